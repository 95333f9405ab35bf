"""`sessions`: brew sessions."""

import asyncio
import json
from typing import Annotated, Any

import typer

from gateway.cli.options import NUMBER_MAX, Config, DataDir
from gateway.cli.output import iso, local_time, table
from gateway.control import opened_read_only, run_command
from gateway.services.brewing import DEFAULT_PHASE

app = typer.Typer(help="Brew sessions: add, list.", no_args_is_help=True)


@app.command()
def add(
    data_dir: DataDir,
    batchcode: Annotated[str, typer.Option(help="The batch code, for instance HP001.")],
    config: Config = None,
    phase: Annotated[str, typer.Option(help="Any text.")] = DEFAULT_PHASE,
    upstream_id: Annotated[
        int | None,
        typer.Option(
            help="The session's number at the upstream; with it, readings are forwarded there.",
            min=1,
            max=NUMBER_MAX,
        ),
    ] = None,
) -> None:
    """Make a brew session and print its id, and nothing else, on stdout."""
    arguments: dict[str, Any] = {"batchcode": batchcode, "phase": phase, "upstream_id": upstream_id}
    typer.echo(asyncio.run(run_command(data_dir, "sessions.add", **arguments)))


@app.command("list")
def list_sessions(
    data_dir: DataDir,
    config: Config = None,
    as_json: Annotated[
        bool, typer.Option("--json", envvar="GATEWAY_SESSIONS_LIST_JSON", help="One JSON object per line.")
    ] = False,
) -> None:
    """List brew sessions."""

    async def show() -> None:
        async with opened_read_only(data_dir) as store:
            sessions = await store.sessions.all()
        if as_json:
            for s in sessions:
                entry = {
                    "id": s.id,
                    "batchcode": s.batchcode,
                    "phase": s.phase,
                    "upstream_id": s.upstream_id,
                    "created_at": iso(s.created_at),
                }
                typer.echo(json.dumps(entry, ensure_ascii=False))
            return
        rows = [(s.id, s.batchcode, s.phase, s.upstream_id, local_time(s.created_at)) for s in sessions]
        table(("ID", "BATCHCODE", "PHASE", "UPSTREAM", "CREATED"), rows)

    asyncio.run(show())
