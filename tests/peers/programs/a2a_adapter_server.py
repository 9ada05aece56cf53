"""An agent that a2a-adapter serves, for our client; the first word of a message says what to do.

What an adapter may do, as its server takes it: `invoke(text, context_id, context=…)` gives a text or parts; or
`stream`, if there is one, gives them piece by piece. What it raises fails the task, with the words of it. It cannot
ask, reject, or answer with a message. It serves on a free port, prints its address, and ends when told to.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from a2a.types import Part
from a2a_adapter import AdapterMetadata, BaseA2AAdapter, to_a2a

BEAT_SECONDS = 0.003


class Peer(BaseA2AAdapter):
    async def invoke(self, user_input: str, context_id: str | None = None, **more: Any) -> str | list[Part]:
        raise NotImplementedError("there is a stream, so this is not asked")

    async def stream(
        self, user_input: str, context_id: str | None = None, **more: Any
    ) -> AsyncIterator[str | Part]:
        parts = list(more["context"].message.parts)
        word, _, rest = parts[0].text.partition(" ")
        match word:
            case "echo":
                yield rest
            case "mirror":
                for part in parts[1:]:
                    yield part
            case "size":
                yield str(len(parts[1].raw))
            case "file":
                yield Part(raw=bytes(range(256)), media_type="application/octet-stream")
            case "chunks":
                for number in range(int(rest)):
                    yield f"{number} "
                    await asyncio.sleep(BEAT_SECONDS)
            case "fail":
                raise RuntimeError("it broke")
            case "crash":
                raise RuntimeError("a secret of the inside")
            case "slow":
                await asyncio.Event().wait()
            case _:
                yield f"what is {word}?"

    def get_metadata(self) -> AdapterMetadata:
        return AdapterMetadata(
            name="peer", description="Does what the first word says.", skills=[{"id": "peer", "name": "peer"}]
        )


def main() -> None:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    app = to_a2a(Peer(), url=f"{url}/")
    listener.listen(1024)
    print(json.dumps({"tasks": url}), flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
