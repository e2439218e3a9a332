async def perform_runs_asyncio(case):
    return {"unsupported": "not yet"}
