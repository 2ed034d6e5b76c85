"""Subscribes to the events of a project, as a program of other people does, and prints what arrives."""

import asyncio
import json
import sys

import nats


async def main(url: str, subject: str, count: int) -> None:
    client = await nats.connect(url)
    subscription = await client.jetstream().subscribe(subject, ordered_consumer=True)
    print("subscribed", flush=True)
    for _ in range(count):
        message = await subscription.next_msg(timeout=30)
        line = {"position": message.metadata.sequence.stream, "subject": message.subject, "body": message.data.decode()}
        print(json.dumps(line), flush=True)
    await client.close()


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
