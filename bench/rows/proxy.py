"""A reverse proxy of a few lines of aiohttp: it passes bytes on and understands none of them."""

import argparse
import asyncio

import uvloop
from aiohttp import ClientSession, TCPConnector, web

HOP = {"host", "connection", "content-length", "transfer-encoding", "keep-alive"}


async def main(url: str, port: int) -> None:
    async with ClientSession(connector=TCPConnector(limit=1024), auto_decompress=False) as session:

        async def passed(request: web.Request) -> web.Response:
            body = await request.read()
            headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP}
            async with session.request(
                request.method, url + request.path_qs, data=body, headers=headers
            ) as answer:
                kept = {name: value for name, value in answer.headers.items() if name.lower() not in HOP}
                return web.Response(body=await answer.read(), status=answer.status, headers=kept)

        runner = web.AppRunner(_app(passed), access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        await asyncio.Event().wait()


def _app(passed) -> web.Application:
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", passed)
    return app


flags = argparse.ArgumentParser()
flags.add_argument("url")
flags.add_argument("--port", type=int, required=True)
asked = flags.parse_args()
uvloop.run(main(asked.url, asked.port))
