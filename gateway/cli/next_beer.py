"""The next beer: `sessions next`, and `devices next`, which finds the brew session by one of its devices."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.client import ask, get
from gateway.cli.lookup import no_recipe, no_session, session_name
from gateway.cli.made import tell_done, tell_made
from gateway.cli.options import NUMBER_MAX
from gateway.cli.output import exact, parse_time

PATH = "/manage/brewsessions"

RecipeToBrew = Annotated[
    int | None, typer.Option(help="What is brewed: an id of `recipes list`.", min=1, max=NUMBER_MAX)
]
NewBatchcode = Annotated[
    str | None,
    typer.Option(help="For instance HP001. [default: the recipe's initials and the next number]"),
]
NextUpstreamId = Annotated[
    int | None,
    typer.Option(
        help="The session's number at the upstream: its readings are forwarded there. 0 stops that.",
        min=0,
        max=NUMBER_MAX,
    ),
]
PhaseAfter = Annotated[str, typer.Option(help="Of the beer that is done fermenting. Any text.")]
Since = Annotated[
    str | None,
    typer.Option(help="The new beer began then, 2026-03-01T18:30: its readings move. [default: now]"),
]
Again = Annotated[
    bool,
    typer.Option("--again", help="Make it although another brew session under way has the batch code."),
]


def begin(
    data_dir: Path, number: int, body: Mapping[str, Any], since: str | None, *, quiet: bool = False
) -> None:
    """End the brew session of this number, make the next, and say what became of both."""
    since = None if since is None else exact(parse_time(since))
    missing = no_recipe(body["recipe_id"]) if body["recipe_id"] else no_session(number)
    done = ask(data_dir, "POST", f"{PATH}/{number}/next", body={**body, "since": since}, missing=missing)
    new, names = done["brewsessions"][0], done["devices"]
    tell_made(new["id"], f"Brew session {session_name(new)} is made.", quiet=quiet)
    old = get(data_dir, f"{PATH}/{number}")["brewsession"]
    reports = "No device reported into it, so none reports into the new one; `devices assign` changes that."
    if names:
        report = "reports" if len(names) == 1 else "report"
        reports = f"{', '.join(names)} {report} into brew session {session_name(new)} from now on."
    phase = f"Brew session {session_name(old)} is in the phase {body['phase']} now; its readings stay there."
    for sentence in (phase, reports):
        tell_done(sentence, quiet=quiet)
    warn(done)


def warn(changed: Mapping[str, Any]) -> None:
    """Print the warnings about a brew session, and why its readings go nowhere, on stderr."""
    for warning in changed["warnings"]:
        tell_done(f"Warning: {warning}.")
    if changed["nowhere"]:
        tell_done(f"So far {changed['nowhere']}.")
