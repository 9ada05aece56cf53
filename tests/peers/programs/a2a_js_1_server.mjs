// @a2a-js/sdk 1 as the server of an agent that our client talks to; the first word of a message says what to do.
//
// It serves on a free port, in 1.0 and in its compatibility mode for 0.3, prints its address, and ends when told to.
import { randomUUID } from 'node:crypto';
import express from 'express';
import { AgentCard, Artifact, Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } from '@a2a-js/sdk/server/express';

const BEAT_MILLISECONDS = 3;
const BYTES = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)).toString('base64');
const TYPE = 'application/octet-stream';
const pause = () => new Promise((go) => setTimeout(go, BEAT_MILLISECONDS));
const stopped = new Set();

class Speaker {
  constructor(taskId, contextId, bus) {
    Object.assign(this, { taskId, contextId, bus });
  }

  message(text) {
    const { taskId, contextId } = this;
    return { messageId: randomUUID(), role: 'ROLE_AGENT', parts: [{ text }], taskId, contextId };
  }

  move(state, text) {
    const { taskId, contextId } = this;
    const message = text === undefined ? undefined : this.message(text);
    const status = { state: `TASK_STATE_${state}`, message, timestamp: new Date().toISOString() };
    this.bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON({ taskId, contextId, status })));
  }

  give(artifactId, parts, append = false, lastChunk = true) {
    const { taskId, contextId } = this;
    const update = TaskArtifactUpdateEvent.fromJSON({ taskId, contextId, append, lastChunk });
    update.artifact = { ...Artifact.fromJSON({ artifactId }), parts };
    this.bus.publish(AgentEvent.artifactUpdate(update));
  }
}

const text = (value) => Message.fromJSON({ parts: [{ text: value }] }).parts[0];

const executor = {
  async execute(asked, bus) {
    const { userMessage, taskId, contextId, task } = asked;
    const said = userMessage.parts[0]?.content?.value ?? '';
    const [word, ...others] = said.split(' ');
    const rest = others.join(' ');
    const speaker = new Speaker(taskId, contextId, bus);
    if (word === 'message') {
      const { taskId: _, ...bare } = speaker.message('just a message');
      bus.publish(AgentEvent.message(Message.fromJSON(bare)));
      return;
    }
    if (task) {
      bus.publish(AgentEvent.task(task));
      speaker.move('WORKING');
      speaker.give('answer', [text(`you said: ${said}`)]);
      speaker.move('COMPLETED');
      return;
    }
    const opened = Task.fromJSON({
      id: taskId,
      contextId,
      status: { state: 'TASK_STATE_SUBMITTED', timestamp: new Date().toISOString() },
      history: [Message.toJSON(userMessage)],
    });
    bus.publish(AgentEvent.task(opened));
    speaker.move('WORKING');
    switch (word) {
      case 'echo':
        speaker.give('answer', [text(rest)]);
        break;
      case 'mirror':
        speaker.give('mirror', userMessage.parts.slice(1));
        break;
      case 'size':
        speaker.give('answer', [text(`${userMessage.parts[1].content.value.length}`)]);
        break;
      case 'file':
        speaker.give('file', Message.fromJSON({ parts: [{ raw: BYTES, mediaType: TYPE }] }).parts);
        break;
      case 'chunks':
        for (let number = 0; number < Number(rest); number++) {
          speaker.give('count', [text(`${number} `)], number > 0, number === Number(rest) - 1);
          await pause();
        }
        break;
      case 'ask':
        speaker.move('INPUT_REQUIRED', 'Which?');
        return;
      case 'fail':
        speaker.move('FAILED', 'it broke');
        return;
      case 'reject':
        speaker.move('REJECTED', 'not for me');
        return;
      case 'crash':
        throw new Error('a secret of the inside');
      case 'slow':
        while (!stopped.has(taskId)) await pause();
        speaker.move('CANCELED');
        return;
    }
    speaker.move('COMPLETED');
  },
  async cancelTask(taskId) {
    stopped.add(taskId);
  },
};

const app = express();
const listener = app.listen(0, '127.0.0.1', () => {
  const url = `http://127.0.0.1:${listener.address().port}`;
  const card = AgentCard.fromJSON({
    name: 'peer',
    description: 'Does what the first word says.',
    version: '1.0.0',
    supportedInterfaces: ['1.0', '0.3'].flatMap((protocolVersion) => [
      { url: `${url}/`, protocolBinding: 'JSONRPC', protocolVersion },
      { url, protocolBinding: 'HTTP+JSON', protocolVersion },
    ]),
    capabilities: { streaming: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'peer', name: 'peer', description: 'peer', tags: ['peer'] }],
  });
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
  const options = { requestHandler, userBuilder: UserBuilder.noAuthentication, legacyCompat: { enabled: true } };
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
  app.use('/', jsonRpcHandler(options));
  app.use('/', restHandler(options));
  console.log(JSON.stringify({ tasks: url }));
});
process.on('SIGTERM', () => process.exit(0));
