// @a2a-js/sdk 1 as the client of agents of ours: `a2a_js_1_client.mjs BINDING VERSION AGENTS`, then see `driving`.
//
// Version 0.3 is its own compatibility mode: it is what it does with a card that says 0.3.
import {
  AgentCard, CancelTaskRequest, GetTaskRequest, ListTasksRequest, ListTasksResponse, Message, SendMessageRequest,
  StreamResponse, SubscribeToTaskRequest, Task, TaskPushNotificationConfig,
} from '@a2a-js/sdk';
import {
  ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory,
} from '@a2a-js/sdk/client';
import { CARD, drive, plainly } from './driving.mjs';

const [BINDING, VERSION, AGENTS] = process.argv.slice(2);
const legacyCompat = { enabled: true };
const fetchImpl = (url) => fetch(url, { headers: { 'A2A-Version': VERSION } });
const cardResolver = new DefaultAgentCardResolver({ legacyCompat, fetchImpl });
const transports = [new JsonRpcTransportFactory({ legacyCompat }), new RestTransportFactory({ legacyCompat })];
const factory = new ClientFactory({ transports, preferredTransports: [BINDING], cardResolver });

const cards = {};
const clients = {};
for (const [name, address] of Object.entries(JSON.parse(AGENTS))) {
  cards[name] = await cardResolver.resolve(address + CARD, '');
  clients[name] = await factory.createFromAgentCard(cards[name]);
}

const spelled = (answer) => ('messageId' in answer ? Message : Task).toJSON(answer);

async function* heard(items) {
  for await (const item of items) yield StreamResponse.toJSON(item);
}

// What others call InvalidParams, this SDK calls so.
const named = (wrong) =>
  plainly(wrong).replace(/^JsonRpc/, '').replace('RequestMalformed', 'InvalidParams');

await drive(
  {
    card: async () => AgentCard.toJSON(cards.tasks),
    async send({ agent, params, version }) {
      const request = SendMessageRequest.fromJSON(params);
      if (!version) return spelled(await clients[agent].sendMessage(request));
      // The client puts its own version over ours, so its transport is asked.
      const serviceParameters = { 'A2A-Version': version };
      return spelled(await clients[agent].transport.sendMessage(request, { serviceParameters }));
    },
    stream: ({ agent, params }) => heard(clients[agent].sendMessageStream(SendMessageRequest.fromJSON(params))),
    get: async ({ params }) => Task.toJSON(await clients.tasks.getTask(GetTaskRequest.fromJSON(params))),
    list: async ({ params }) =>
      ListTasksResponse.toJSON(await clients.tasks.listTasks(ListTasksRequest.fromJSON(params))),
    cancel: async ({ params }) =>
      Task.toJSON(await clients.tasks.cancelTask(CancelTaskRequest.fromJSON(params))),
    subscribe: ({ params }) => heard(clients.tasks.resubscribeTask(SubscribeToTaskRequest.fromJSON(params))),
    hook: ({ params }) =>
      clients.tasks.transport.createTaskPushNotificationConfig(TaskPushNotificationConfig.fromJSON(params), {
        serviceParameters: { 'A2A-Version': VERSION },
      }),
  },
  named,
);
