"""Drives a server with the client of PyPI: calls tools as it is told, a line of JSON for each call and each answer.

usage: drive.py MODE URL | drive.py MODE COMMAND ARGUMENT...
"""

import asyncio
import json
import os
import sys

from mcp import Client, MCPError, StdioServerParameters


def tell(answer):
    print(json.dumps(answer), flush=True)


async def main():
    mode, first, *rest = sys.argv[1:]
    if first.startswith("http://"):
        server = first
    else:
        server = StdioServerParameters(command=first, args=rest, env=dict(os.environ))
    async with Client(server, mode=mode) as client:
        tools = await client.list_tools()
        tell([tool.name for tool in tools.tools])
        while line := await asyncio.to_thread(sys.stdin.readline):
            tool, arguments = json.loads(line)
            try:
                result = await client.call_tool(tool, arguments)
            except MCPError as error:
                tell({"refused": error.error.code})
                continue
            if not result.is_error:
                assert json.loads(result.content[0].text) == result.structured_content
            tell(result.structured_content)


asyncio.run(main())
