// @a2a-js/sdk 0.3 as the client of agents of ours: `a2a_js_0_client.mjs BINDING VERSION AGENTS`, then see `driving`.
import {
  ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory,
} from '@a2a-js/sdk/client';
import { CARD, drive, plainly } from './driving.mjs';

const [BINDING, , AGENTS] = process.argv.slice(2);
const transports = [new JsonRpcTransportFactory(), new RestTransportFactory()];
const factory = new ClientFactory({ transports, preferredTransports: [BINDING] });

const cards = {};
const clients = {};
for (const [name, address] of Object.entries(JSON.parse(AGENTS))) {
  cards[name] = await new DefaultAgentCardResolver().resolve(address + CARD, '');
  clients[name] = await factory.createFromAgentCard(cards[name]);
}

// An error that it has no class for is named by its code.
function named(wrong) {
  const error = wrong.cause ?? wrong;
  const code = error.errorResponse?.error?.code ?? /\(Code: (-\d+)\)/.exec(wrong.message)?.[1];
  return code === undefined ? plainly(wrong) : `code ${code}`;
}

await drive(
  {
    card: async () => cards.tasks,
    send: ({ agent, params }) => clients[agent].sendMessage(params),
    stream: ({ agent, params }) => clients[agent].sendMessageStream(params),
    get: ({ params }) => clients.tasks.getTask(params),
    cancel: ({ params }) => clients.tasks.cancelTask(params),
    subscribe: ({ params }) => clients.tasks.resubscribeTask(params),
    hook: ({ params: { taskId, ...pushNotificationConfig } }) =>
      clients.tasks.transport.setTaskPushNotificationConfig({ taskId, pushNotificationConfig }),
  },
  named,
);
