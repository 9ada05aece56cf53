// @a2a-js/sdk as the client of an agent of ours: does every case once and prints what it saw, a JSON line each.
//
// `client.mjs TASKS WORDS` does the cases; `client.mjs TASKS reconnect COUNT` cuts and resumes streams. What is
// right is not known here: the tests compare. The cases are those of a2a_sdk/client.py, in the same order.
import { randomUUID } from 'node:crypto';
import {
  CancelTaskRequest, GetTaskRequest, ListTasksRequest, Part, SendMessageRequest, SubscribeToTaskRequest,
  TaskPushNotificationConfig, TaskState, taskStateToJSON,
} from '@a2a-js/sdk';
import { ClientFactory, DefaultAgentCardResolver } from '@a2a-js/sdk/client';

const CARD = '/.well-known/agent-card.json';
const TERMINAL = new Set([
  TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_FAILED,
  TaskState.TASK_STATE_CANCELED, TaskState.TASK_STATE_REJECTED,
]);
const [tasks, what, count] = process.argv.slice(2);
const client = await connect(tasks);
const wordy = what === 'reconnect' ? null : await connect(what);

function connect(address) {
  return new ClientFactory().createFromUrl(address + CARD, '');
}

function said(text, { more = [], configuration = {}, ...message } = {}) {
  const parts = [{ text }, ...more];
  return SendMessageRequest.fromJSON({
    message: { messageId: randomUUID(), role: 'ROLE_USER', parts, ...message },
    configuration,
  });
}

const task = (text, more) => client.sendMessage(said(text, more));
const atOnce = (text) => client.sendMessage(said(text, { configuration: { returnImmediately: true } }));
const get = (fields) => client.getTask(GetTaskRequest.fromJSON(fields));
const cancelling = (id) => client.cancelTask(CancelTaskRequest.fromJSON({ id }));
const listing = (fields) => client.listTasks(ListTasksRequest.fromJSON(fields));
const subscribing = (id) => client.resubscribeTask(SubscribeToTaskRequest.fromJSON({ id }));
const state = (of) => taskStateToJSON(of.status.state).replace('TASK_STATE_', '');
const textsOf = (parts) => parts.map((part) => (part.content?.$case === 'text' ? part.content.value : ''));
const textOf = (one) => one.artifacts.flatMap((artifact) => textsOf(artifact.parts)).join('');
const truth = (chunks) => Array.from({ length: chunks }, (_, number) => `${number} `).join('');
const isMessage = (answer) => 'messageId' in answer;

// A stream, folded the way the protocol says.
class Seen {
  kinds = [];
  states = [];
  artifacts = new Map();
  taskId = '';

  take({ payload }) {
    const { $case: kind, value } = payload;
    this.kinds.push(kind);
    if (kind === 'task') {
      this.taskId = value.id;
      this.states.push(state(value));
      this.artifacts = new Map(value.artifacts.map((one) => [one.artifactId, textsOf(one.parts)]));
    } else if (kind === 'statusUpdate') {
      this.states.push(state(value));
    } else if (kind === 'artifactUpdate') {
      const { artifactId, parts } = value.artifact;
      const before = value.append ? this.artifacts.get(artifactId) ?? [] : [];
      this.artifacts.set(artifactId, [...before, ...textsOf(parts)]);
    }
  }

  async all(items) {
    for await (const item of items) this.take(item);
    return this;
  }

  get text() {
    return [...this.artifacts.values()].flat().join('');
  }
}

async function refused(doing) {
  try {
    const saw = await doing();
    return `no error but ${JSON.stringify(saw)}`;
  } catch (wrong) {
    const error = wrong.cause?.name?.endsWith('Error') && wrong.name === 'Error' ? wrong.cause : wrong;
    const name = error.name === 'Error' ? error.constructor.name : error.name;
    // What others call InvalidParams, this SDK calls so.
    return name.replace(/^JsonRpc/, '').replace(/Error$/, '').replace('RequestMalformed', 'InvalidParams');
  }
}

async function runOut(items) {
  const all = [];
  for await (const item of items) all.push(item);
  return all;
}

const CASES = {
  async card() {
    const found = await new DefaultAgentCardResolver().resolve(tasks + CARD, '');
    const [way] = found.supportedInterfaces;
    return {
      name: found.name,
      binding: way.protocolBinding,
      version: way.protocolVersion,
      streaming: found.capabilities.streaming,
      skills: found.skills.length,
    };
  },
  async send_waits() {
    const answer = await task('echo Grüße, 世界 🌍');
    return { state: state(answer), text: textOf(answer) };
  },
  async send_at_once() {
    const answer = await atOnce('slow');
    const then = await cancelling(answer.id);
    return { open: !TERMINAL.has(answer.status.state), then: state(then) };
  },
  async stream() {
    const seen = await new Seen().all(client.sendMessageStream(said('chunks 20')));
    return { first: seen.kinds[0], states: seen.states, text: seen.text };
  },
  async get() {
    const answer = await task('echo again');
    const read = await get({ id: answer.id });
    return { state: state(read), text: textOf(read), same: read.contextId === answer.contextId };
  },
  async history() {
    const asked = await task('ask');
    await task('blue', { taskId: asked.id });
    const lengths = {};
    for (const historyLength of [0, 1, 2, 100]) {
      const read = await get({ id: asked.id, historyLength });
      lengths[historyLength] = read.history.map((message) => textsOf(message.parts)[0]);
    }
    const without = await task('echo x', { configuration: { historyLength: 0 } });
    return { lengths, 'send 0': without.history.length };
  },
  async list_pages() {
    const contextId = randomUUID();
    const made = [];
    for (let number = 0; number < 5; number++) made.push((await task(`echo ${number}`, { contextId })).id);
    const sizes = [];
    const found = [];
    const totals = new Set();
    let bare = true;
    let pageToken = '';
    do {
      const page = await listing({ contextId, pageSize: 2, pageToken });
      sizes.push(page.tasks.length);
      totals.add(page.totalSize);
      found.push(...page.tasks.map((one) => one.id));
      bare &&= page.tasks.every((one) => one.artifacts.length === 0);
      pageToken = page.nextPageToken;
    } while (pageToken);
    const full = await listing({ contextId, includeArtifacts: true });
    const failed = await listing({ contextId, status: 'TASK_STATE_FAILED' });
    return {
      sizes,
      totals: [...totals].sort(),
      'newest first': found.join() === made.reverse().join(),
      bare,
      texts: full.tasks.map(textOf).sort(),
      failed: failed.tasks.length,
    };
  },
  async cancel() {
    const open = await atOnce('slow');
    const stopped = await cancelling(open.id);
    const again = await cancelling(open.id);
    return { state: state(stopped), again: state(again) };
  },
  async subscribe() {
    const open = await atOnce('chunks 60');
    const both = await Promise.all([1, 2].map(() => new Seen().all(subscribing(open.id))));
    return {
      first: both.map((seen) => seen.kinds[0]),
      last: both.map((seen) => seen.states.at(-1)),
      true: both.map((seen) => seen.text === truth(60)),
    };
  },
  async ask() {
    const asked = await task('ask');
    const [question] = textsOf(asked.status.message.parts);
    const answer = await task('blue', { taskId: asked.id });
    return {
      state: state(asked),
      question,
      then: state(answer),
      text: textOf(answer),
      same: answer.id === asked.id && answer.contextId === asked.contextId,
    };
  },
  async ask_in_a_stream() {
    const seen = await new Seen().all(client.sendMessageStream(said('ask')));
    const answer = await new Seen().all(client.sendMessageStream(said('green', { taskId: seen.taskId })));
    return { asked: seen.states.at(-1), then: answer.states.at(-1), text: answer.text };
  },
  async message() {
    const answer = await wordy.sendMessage(said('message'));
    const seen = await runOut(wordy.sendMessageStream(said('message')));
    return {
      kind: isMessage(answer) ? 'message' : 'task',
      text: textsOf(answer.parts)[0],
      stream: seen.map((item) => item.payload.$case),
    };
  },
  async parts() {
    const more = [
      { text: 'plain', mediaType: 'text/plain' },
      { text: '' },
      {
        raw: Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)).toString('base64'),
        filename: 'all.bin',
        mediaType: 'application/octet-stream',
      },
      { raw: '', filename: 'empty.bin' },
      { url: 'https://example.com/a.png', filename: 'a.png', mediaType: 'image/png' },
      { data: { nested: [1, 2.5, true, null, { a: '' }] } },
      { data: [1, 'two'] },
      { data: 'bare' },
      { data: 0 },
      { data: false },
      { text: 'noted', metadata: { k: { n: 1 } } },
    ];
    const plain = (part) => JSON.stringify(Part.toJSON(part));
    const answer = await task('mirror', { more });
    const back = answer.artifacts[0].parts.map(plain);
    const sent = more.map((part) => plain(Part.fromJSON(part)));
    const wrong = sent.filter((part, place) => part !== back[place]);
    return wrong.length || back.length !== sent.length ? { wrong, back } : { parts: true, state: state(answer) };
  },
  async null_part() {
    const answer = await task('mirror', { more: [{ data: null }] });
    return { parts: answer.artifacts[0].parts.map((part) => part.content?.$case) };
  },
  async large() {
    const words = 'x'.repeat(1_000_000);
    return { same: textOf(await task(`echo ${words}`)) === words };
  },
  async many_at_once() {
    const numbers = Array.from({ length: 50 }, (_, number) => `${number}`);
    const answers = await Promise.all(numbers.map((number) => task(`echo ${number}`)));
    return { own: answers.every((one, place) => textOf(one) === numbers[place]) };
  },
  async ends() {
    const seen = {};
    for (const word of ['fail', 'reject', 'crash']) {
      const answer = await task(word);
      const spoken = textsOf(answer.status.message?.parts ?? [])[0] ?? '';
      seen[word] = [state(answer), word === 'crash' ? spoken.includes('secret') : spoken];
    }
    return seen;
  },
  async contexts() {
    const one = await task('ask', { contextId: 'a-room' });
    const mismatch = await refused(() => task('blue', { taskId: one.id, contextId: 'another-room' }));
    const right = await task('blue', { taskId: one.id, contextId: 'a-room' });
    return { kept: one.contextId, mismatch, match: state(right) };
  },
  async errors() {
    const over = await task('echo done');
    const nobody = randomUUID();
    const hook = { taskId: over.id, url: 'https://example.com/hook' };
    return {
      get: await refused(() => get({ id: nobody })),
      cancel: await refused(() => cancelling(nobody)),
      'cancel over': await refused(() => cancelling(over.id)),
      'send to nobody': await refused(() => task('echo', { taskId: nobody })),
      'send to over': await refused(() => task('echo', { taskId: over.id })),
      subscribe: await refused(() => runOut(subscribing(nobody))),
      'subscribe over': await refused(() => runOut(subscribing(over.id))),
      'media type': await refused(() => task('mirror', { more: [{ text: 'x', mediaType: 'video/mp4' }] })),
      'page size': await refused(() => listing({ pageSize: 101 })),
      'page token': await refused(() => listing({ pageToken: 'nonsense' })),
      'no parts': await refused(() =>
        client.sendMessage(SendMessageRequest.fromJSON({ message: { messageId: 'm', role: 'ROLE_USER' } })),
      ),
      push: await refused(() =>
        client.transport.createTaskPushNotificationConfig(TaskPushNotificationConfig.fromJSON(hook), {
          serviceParameters: { 'A2A-Version': '1.0' },
        }),
      ),
    };
  },
  async versions() {
    const seen = {};
    for (const version of ['1.0', '0.3', '1.7', '99.0']) {
      try {
        // The client puts its own version over ours, so its transport is asked.
        const answer = await client.transport.sendMessage(said('echo x'), {
          serviceParameters: { 'A2A-Version': version },
        });
        seen[version] = isMessage(answer) ? 'message' : 'task';
      } catch (wrong) {
        seen[version] = await refused(() => Promise.reject(wrong));
      }
    }
    return seen;
  },
};

// A stream that is left in its middle and subscribed to again, twice, with no cursor.
async function cutAndResumed(number) {
  const chunks = 150;
  const firsts = [];
  let seen = new Seen();
  let items = client.sendMessageStream(said(`chunks ${chunks}`));
  for (const cut of [1 + (number % 50), 2 + (number % 5)]) {
    for (;;) {
      const { value, done } = await items.next();
      if (done) break;
      seen.take(value);
      if (seen.kinds.length > cut) break;
    }
    await items.return();
    const { taskId } = seen;
    seen = new Seen();
    items = subscribing(taskId);
    try {
      seen.take((await items.next()).value);
    } catch (wrong) {
      // It ended meanwhile: then reading it tells all.
      firsts.push(wrong.name);
      const read = await get({ id: taskId });
      return { firsts, last: state(read), true: textOf(read) === truth(chunks) };
    }
    firsts.push(seen.kinds[0]);
  }
  await seen.all(items);
  return { firsts, last: seen.states.at(-1), true: seen.text === truth(chunks) };
}

function tell(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

if (what === 'reconnect') {
  for (let start = 0; start < Number(count); start += 10) {
    const numbers = Array.from({ length: Math.min(10, Number(count) - start) }, (_, more) => start + more);
    (await Promise.all(numbers.map(cutAndResumed))).forEach(tell);
  }
} else {
  for (const [name, act] of Object.entries(CASES)) {
    try {
      tell({ case: name, saw: await act() });
    } catch (wrong) {
      tell({ case: name, broke: String(wrong.stack ?? wrong) });
    }
  }
}
process.exit(0);
