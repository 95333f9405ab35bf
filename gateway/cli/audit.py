"""`audit`: who changed what, and when."""

import json
from typing import Annotated

import typer

from gateway.cli.client import get
from gateway.cli.options import Config, DataDir, Wide, json_option
from gateway.cli.output import Cell, Column, exact, local_time, parse_since, table, unix, when

app = typer.Typer(help="Audit log: who changed what, and when.", no_args_is_help=True)

NEWEST = 11_000
"""More rows than the log keeps."""


@app.command("list")
def list_audit(
    data_dir: DataDir,
    config: Config = None,
    since: Annotated[
        str | None, typer.Option(help="From then on: 2026-03-01, 2026-03-01T18:30, or the last 7d or 12h.")
    ] = None,
    about: Annotated[
        str | None,
        typer.Option(
            "--object",
            envvar="GATEWAY_AUDIT_LIST_OBJECT",
            help="Only this object, such as device:3 or key:phone, or this kind of object, such as target.",
        ),
    ] = None,
    as_json: Annotated[bool, json_option("GATEWAY_AUDIT_LIST_JSON")] = False,
    wide: Wide = False,
) -> None:
    """List who changed what, and when, the newest last.

    Each change has its time, actor, address, verb and object, and a line of detail without secrets. An actor
    is a key, a browser that logged in with a key (page:phone), a user of this machine (cli:uid 1000), or the
    gateway itself (system). The log keeps 10,000 rows and 400 days. Wrong keys, of a stranger, have one row
    for each address and hour, and 1,000 rows of their own.
    """
    query = {
        "since": None if since is None else exact(parse_since(since)),
        "object": about,
        "last": NEWEST,
    }
    # By time, not in the order of writing: uses of keys are written up to a minute later.
    rows = sorted(get(data_dir, "/manage/audit", query=query)["audit"], key=lambda row: unix(row["at"]) or 0)
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row, ensure_ascii=False))
        return
    cells = [
        (
            Cell(local_time(unix(row["at"])), when(unix(row["at"])).short),
            row["actor"],
            row["source"],
            row["verb"] if row["times"] == 1 else f"{row['verb']} x {row['times']}",
            row["object"],
            row["detail"],
        )
        for row in rows
    ]
    columns = (
        *(Column("TIME"), Column("ACTOR", cut=True), Column("FROM", 4, cut=True), Column("VERB")),
        *(Column("OBJECT", 2, cut=True), Column("DETAIL", 3, cut=True)),
    )
    table(columns, cells, wide=wide)
