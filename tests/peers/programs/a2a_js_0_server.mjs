// @a2a-js/sdk 0.3 as the server of an agent that our client talks to; the first word of a message says what to do.
//
// It serves on a free port, prints its address, and ends when told to.
import { randomUUID } from 'node:crypto';
import express from 'express';
import { DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } from '@a2a-js/sdk/server/express';

const BEAT_MILLISECONDS = 3;
const BYTES = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)).toString('base64');
const TYPE = 'application/octet-stream';
const pause = () => new Promise((go) => setTimeout(go, BEAT_MILLISECONDS));
const stopped = new Set();
const text = (words) => ({ kind: 'text', text: words });

class Speaker {
  constructor(taskId, contextId, bus) {
    Object.assign(this, { taskId, contextId, bus });
  }

  message(words) {
    const { taskId, contextId } = this;
    return { kind: 'message', messageId: randomUUID(), role: 'agent', parts: [text(words)], taskId, contextId };
  }

  move(state, words, final = false) {
    const { taskId, contextId } = this;
    const message = words === undefined ? undefined : this.message(words);
    const status = { state, message, timestamp: new Date().toISOString() };
    this.bus.publish({ kind: 'status-update', taskId, contextId, status, final });
  }

  end(state, words) {
    this.move(state, words, true);
    this.bus.finished();
  }

  give(artifactId, parts, append = false, lastChunk = true) {
    const { taskId, contextId } = this;
    this.bus.publish({ kind: 'artifact-update', taskId, contextId, append, lastChunk, artifact: { artifactId, parts } });
  }
}

const executor = {
  async execute({ userMessage, taskId, contextId, task }, bus) {
    const said = userMessage.parts[0]?.text ?? '';
    const [word, ...others] = said.split(' ');
    const rest = others.join(' ');
    const speaker = new Speaker(taskId, contextId, bus);
    if (word === 'message') {
      const { taskId: _, ...bare } = speaker.message('just a message');
      bus.publish(bare);
      bus.finished();
      return;
    }
    if (task) {
      speaker.move('working');
      speaker.give('answer', [text(`you said: ${said}`)]);
      speaker.end('completed');
      return;
    }
    const status = { state: 'submitted', timestamp: new Date().toISOString() };
    bus.publish({ kind: 'task', id: taskId, contextId, status, history: [userMessage] });
    speaker.move('working');
    switch (word) {
      case 'echo':
        speaker.give('answer', [text(rest)]);
        break;
      case 'mirror':
        speaker.give('mirror', userMessage.parts.slice(1));
        break;
      case 'size':
        speaker.give('answer', [text(`${Buffer.from(userMessage.parts[1].file.bytes, 'base64').length}`)]);
        break;
      case 'file':
        speaker.give('file', [{ kind: 'file', file: { bytes: BYTES, mimeType: TYPE } }]);
        break;
      case 'chunks':
        for (let number = 0; number < Number(rest); number++) {
          speaker.give('count', [text(`${number} `)], number > 0, number === Number(rest) - 1);
          await pause();
        }
        break;
      case 'ask':
        return speaker.end('input-required', 'Which?');
      case 'fail':
        return speaker.end('failed', 'it broke');
      case 'reject':
        return speaker.end('rejected', 'not for me');
      case 'crash':
        throw new Error('a secret of the inside');
      case 'slow':
        while (!stopped.has(taskId)) await pause();
        return speaker.end('canceled');
    }
    speaker.end('completed');
  },
  async cancelTask(taskId) {
    stopped.add(taskId);
  },
};

const app = express();
const listener = app.listen(0, '127.0.0.1', () => {
  const url = `http://127.0.0.1:${listener.address().port}`;
  const card = {
    name: 'peer',
    description: 'Does what the first word says.',
    version: '1.0.0',
    protocolVersion: '0.3.0',
    url: `${url}/`,
    preferredTransport: 'JSONRPC',
    additionalInterfaces: [{ url, transport: 'HTTP+JSON' }],
    capabilities: { streaming: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'peer', name: 'peer', description: 'peer', tags: ['peer'] }],
  };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
  const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
  app.use('/', jsonRpcHandler(options));
  app.use('/', restHandler(options));
  console.log(JSON.stringify({ tasks: url }));
});
process.on('SIGTERM', () => process.exit(0));
