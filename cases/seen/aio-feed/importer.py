"""Imports a product feed in an asyncio service."""
import asyncio
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

POOL = ThreadPoolExecutor(4)


class AsyncFile:
    """Asynchronous wrapper: every method call runs in the pool."""

    def __init__(self, f):
        self._f = f
        self._loop = asyncio.get_running_loop()

    async def readline(self):
        return await self._loop.run_in_executor(POOL, self._f.readline)

    async def read(self, n):
        return await self._loop.run_in_executor(POOL, self._f.read, n)

    async def close(self):
        await self._loop.run_in_executor(POOL, self._f.close)


async def lines(path, blocks):
    loop = asyncio.get_running_loop()
    f = AsyncFile(await loop.run_in_executor(POOL, open, path, "rb"))
    if blocks:
        rest = b""
        while block := await f.read(1 << 20):
            part = (rest + block).split(b"\n")
            rest = part.pop()
            for line in part:
                yield line
    else:
        while line := await f.readline():
            yield line
    await f.close()


def checksum_ok(ean):
    digits = [int(c) for c in ean]
    return (sum(digits[0::2]) + 3 * sum(digits[1::2])) % 10 == 0


async def main():
    path, blocks = sys.argv[1], "--blocks" in sys.argv
    value, good, n = Decimal(0), 0, 0
    async for line in lines(path, blocks):
        row = json.loads(line)
        value += Decimal(row["price"]).scaleb(-2) * row["stock"]
        good += checksum_ok(row["ean"])
        n += 1
    print(n, good, value)


asyncio.run(main())
