// What the Node client programs have in common: a question a line comes in, an answer a line goes out.
//
// Each program gives its operations and how it names what its SDK throws. A stream is an async generator; it is
// read to its end, or left after so many items. What is right is not known here: the tests compare.
import { createInterface } from 'node:readline';

export const CARD = '/.well-known/agent-card.json';

export async function drive(operations, named = plainly) {
  const doing = new Set();
  for await (const line of createInterface({ input: process.stdin })) {
    const task = answer(operations, named, JSON.parse(line)).finally(() => doing.delete(task));
    doing.add(task);
  }
  process.exit(0);
}

async function answer(operations, named, { id, ask, with: { leave_after: leaveAfter, ...given } }) {
  const told = { id };
  try {
    if (leaveAfter === undefined) {
      told.saw = await operations[ask](given);
    } else {
      told.saw = [];
      for await (const item of operations[ask](given)) {
        told.saw.push(item);
        if (told.saw.length === leaveAfter) break;
      }
    }
  } catch (wrong) {
    told.wrong = named(wrong);
    told.words = String(wrong?.stack ?? wrong);
  }
  process.stdout.write(`${JSON.stringify(told)}\n`);
}

// The name of an error as this SDK gives it: that of its class, which may be the cause of what is thrown.
export function plainly(wrong) {
  const error = wrong.cause?.name?.endsWith('Error') && wrong.name === 'Error' ? wrong.cause : wrong;
  const name = error.name === 'Error' ? error.constructor.name : error.name;
  return name.replace(/Error$/, '');
}
