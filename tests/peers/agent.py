"""The agents of ours that other parties' clients talk to; the first word of a message says what to do.

`python tests/peers/agent.py` prints the addresses of two, one that answers with tasks and one that may answer
with a message, and serves until it is told to end.
"""

from __future__ import annotations

import asyncio
import json
import signal

from dragoman import Agent, Node, Part, Turn
from dragoman.app.config import Config, NodeConfig

# Between two chunks, so that a stream lasts long enough to be cut in its middle.
BEAT_SECONDS = 0.003
MODES = ("text/*", "application/*", "image/png")


async def take(turn: Turn) -> object:
    word, _, rest = (turn.parts[0].text or "").partition(" ")
    match word:
        case "echo":
            return rest
        case "mirror":
            await turn.artifact(turn.parts[1:], "mirror")
        case "size":
            return str(len(turn.parts[1].raw or b""))
        case "file":
            await turn.artifact([Part(raw=bytes(range(256)), media_type="application/octet-stream")], "file")
        case "chunks":
            async with turn.stream("count") as out:
                for number in range(int(rest)):
                    await out.write(f"{number} ")
                    await asyncio.sleep(BEAT_SECONDS)
        case "ask":
            answer = await turn.ask("Which?")
            return f"you said: {answer.text}"
        case "message":
            await turn.reply("just a message")
        case "fail":
            await turn.fail("it broke")
        case "reject":
            await turn.reject("not for me")
        case "crash":
            raise RuntimeError("a secret of the inside")
        case "slow":
            await turn.say("still at it")
            await asyncio.Event().wait()
        case _:
            raise ValueError(f"what is {word!r}?")
    return None


async def main() -> None:
    tasks = Agent("tasks", take, description="Answers with tasks.", input_modes=MODES)
    words = Agent("words", take, description="May answer with a message.", answers="either")
    async with Node([tasks, words], Config(node=NodeConfig(port=0))) as node:
        ended = asyncio.Event()
        for name in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(name, ended.set)
        print(
            json.dumps({"tasks": f"{node.url}/agents/tasks", "words": f"{node.url}/agents/words"}), flush=True
        )
        await ended.wait()


if __name__ == "__main__":
    asyncio.run(main())
