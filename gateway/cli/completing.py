"""Completion in bash, zsh and fish: commands, options, and the names of devices and of brew sessions.

The script that `completion` prints calls the program with `COMPLETING` set to the name of the shell,
and with the words up to the cursor. The answer is one candidate a line, with its help behind a tab. It is
never an error and never late: without an answer, the shell completes names of files, as it does for paths.
"""

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Literal, get_args

import typer
from typer._click.shell_completion import _resolve_context, _resolve_incomplete
from typer.core import TyperGroup

from gateway.cli import COMPLETING

LATEST_S = 2.0
"""Seconds after which the shell gets no answer."""

FILES = 1
"""The exit code that has the shell complete names of files."""

BASH = """\
_hydrometer_gateway() {
    local found
    COMPREPLY=()
    if found=$(%(variable)s=bash "$1" "$2" "${COMP_LINE:0:COMP_POINT}" 2>/dev/null); then
        [[ -z $found ]] || mapfile -t COMPREPLY <<<"$found"
    else
        compopt -o default 2>/dev/null
    fi
}
complete -F _hydrometer_gateway hydrometer-gateway
"""

ZSH = """\
#compdef hydrometer-gateway
_hydrometer-gateway() {
    local found line
    local -a values shown
    found=$(%(variable)s=zsh "${words[1]}" "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null) || {
        _files
        return
    }
    for line in "${(@f)found}"; do
        [[ -n $line ]] || continue
        values+=("${line%%$'\\t'*}")
        shown+=("${line/$'\\t'/  }")
    done
    compadd -l -d shown -a values
}
# zsh runs a file of its fpath for the first TAB; a file that is sourced only says what it is for.
if [[ ${funcstack[1]} == _hydrometer-gateway ]]; then
    _hydrometer-gateway "$@"
else
    compdef _hydrometer-gateway hydrometer-gateway
fi
"""

FISH = """\
function __hydrometer_gateway
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    env %(variable)s=fish $program $words (commandline -ct) 2>/dev/null
    or __fish_complete_path (commandline -ct)
end
complete -c hydrometer-gateway -f -a '(__hydrometer_gateway)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="bash, zsh or fish.")],
) -> None:
    """Print the script for the Tab key of a shell.

    It completes commands, options, devices, brew sessions, targets, keys, channels and families of devices.

    For bash: hydrometer-gateway completion bash >> ~/.bashrc
    """
    typer.echo(script(shell), nl=False)


def script(shell: str) -> str:
    """Return the script that makes a shell complete our commands."""
    return SCRIPTS[shell] % {"variable": COMPLETING}


def answer(app: typer.Typer) -> None:
    """Write the candidates for the words on the command line, and end the process."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(FILES))
    signal.setitimer(signal.ITIMER_REAL, LATEST_S)
    try:
        with open(os.devnull, "w") as nothing, contextlib.redirect_stderr(nothing):  # noqa: PTH123
            found = _of_bash(app) if os.environ[COMPLETING] == "bash" else _of_words(app)
    except (Exception, SystemExit):  # whatever it is: no error may stand among the candidates
        found = None
    if found:
        sys.stdout.write("".join(f"{line}\n" for line in found))
        sys.stdout.flush()
    os._exit(FILES if found is None else 0)


def _of_words(app: typer.Typer) -> list[str] | None:
    *words, last = sys.argv[1:] or [""]
    found = candidates(app, words, last)
    return None if found is None else [f"{word}\t{help}" if help else word for word, help in found]


def _of_bash(app: typer.Typer) -> list[str] | None:
    """Return the candidates as bash has to insert them: it gives us the line, and wants the end of a word.

    bash splits words at colons, too, and takes the candidates for the last part of the word.
    """
    part, line = sys.argv[1:]
    (_, *words), last, raw = split(line)
    quote = raw[:1] if raw[:1] in {"'", '"'} else ""
    found = candidates(app, words, last)
    if found is None:
        return None
    begun = len(raw) - len(part) if raw.endswith(part) else 0
    return [quoted(word, quote)[begun:] for word, _ in found]


def split(line: str) -> tuple[list[str], str, str]:
    """Split a line as a shell does; return the whole words, and the last one without and with its quotes."""
    words: list[str] = []
    word: str | None = None
    quote, start, place = "", len(line), 0
    while place < len(line):
        char = line[place]
        if not quote and char.isspace():
            if word is not None:
                words.append(word)
            word, start = None, len(line)
        else:
            if word is None:
                word, start = "", place
            if char == "\\" and quote != "'":
                place += 1
                word += line[place : place + 1]
            elif char == quote:
                quote = ""
            elif not quote and char in "'\"":
                quote = char
            else:
                word += char
        place += 1
    return words, word or "", line[start:]


def quoted(word: str, quote: str) -> str:
    """Return a word as one types it in a shell, behind the quotation mark that is typed already, if any."""
    if quote == "'":
        return quote + word.replace("'", "'\\''")
    if quote == '"':
        return quote + "".join(f"\\{char}" if char in '"\\$`' else char for char in word)
    return "".join(char if char.isalnum() or char in "-_.:/=,+@%" else f"\\{char}" for char in word)


def candidates(app: typer.Typer, words: list[str], last: str) -> list[tuple[str, str]] | None:
    """Return the words that can stand in place of the last one, with their help; None for names of files."""
    context = _resolve_context(typer.main.get_command(app), {}, "hydrometer-gateway", words)
    if isinstance(context.command, TyperGroup) and context._protected_args:
        return []  # behind a command that does not exist
    wanted, rest = _resolve_incomplete(context, words, last)
    option = last[: len(last) - len(rest)]
    found = [(option + item.value, item.help or "") for item in wanted.shell_complete(context, rest)]
    kind = getattr(getattr(wanted, "type_descriptor", None), "annotation", None)
    takes_files = Path in {kind, *get_args(kind)}
    return None if takes_files and not found else found
