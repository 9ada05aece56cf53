"""python-a2a as the server of an agent that our client talks to; the first word of a message says what to do.

It serves on a free port, prints its address, and ends when told to. It has an address for each method; that of
`tasks/send` is the one to know.
"""

from __future__ import annotations

import base64
import json
import logging
import time
from typing import Any

from python_a2a import A2AServer, AgentCard, AgentSkill, Task, TaskState, TaskStatus
from python_a2a.server.http import create_flask_app
from werkzeug.serving import make_server

SLOW_SECONDS = 1


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


class Peer(A2AServer):
    def handle_task(self, task: Task) -> Task:
        # Whatever else a message holds, this is what an agent gets of it.
        words = task.message["content"]["text"]
        word, _, rest = words.partition(" ")
        task.status = TaskStatus(state=TaskState.COMPLETED)
        match word:
            case "echo":
                task.artifacts = [{"parts": [text(rest)]}]
            case "file":
                encoded = base64.b64encode(bytes(range(256))).decode()
                file = {"bytes": encoded, "mimeType": "application/octet-stream"}
                task.artifacts = [{"parts": [{"type": "file", "file": file}]}]
            case "chunks":
                task.artifacts = [{"parts": [text(f"{number} ") for number in range(int(rest))]}]
            case "ask":
                return self.said(task, TaskState.INPUT_REQUIRED, "Which?")
            case "fail":
                return self.said(task, TaskState.FAILED, "it broke")
            case "crash":
                raise RuntimeError("a secret of the inside")
            case "slow":
                time.sleep(SLOW_SECONDS)
            case _:
                task.artifacts = [{"parts": [text(f"you said: {words}")]}]
        return task

    def said(self, task: Task, state: TaskState, words: str) -> Task:
        task.status = TaskStatus(state=state, message={"role": "agent", "parts": [text(words)]})
        return task


def main() -> None:
    card = AgentCard(
        name="peer",
        description="Does what the first word says.",
        url="",
        version="1.0.0",
        skills=[AgentSkill(id="peer", name="peer", description="peer", tags=["peer"])],
    )
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, create_flask_app(Peer(agent_card=card)), threaded=True)
    card.url = f"http://127.0.0.1:{server.server_port}"
    print(json.dumps({"tasks": f"{card.url}/tasks/send", "card": card.url}), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
