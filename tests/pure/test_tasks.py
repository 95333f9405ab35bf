"""Every task is in a group, or somebody waits for its end: else an error in it would be lost for ever."""

import ast

from tests.pure.test_architecture import GATEWAY, module_name

MAKERS = {"create_task", "ensure_future"}

GROUPS = {"tasks", "parts", "group", "bursts", "boots"}
"""Names of task groups in our code; a task of a group ends the group if it fails."""

WATCHED = {
    "gateway.http.lines": 2,  # the work, whose error is taken off; the news, awaited with it
    "gateway.intake.ordinary": 1,  # steps behind a commit, which turn every error into an answer
    "gateway.http.short_way": 1,  # a post in steps, whose error becomes its answer
    "gateway.transports.tcp": 1,  # a payload in steps, whose error becomes its answer
    "gateway.services.insight": 1,  # a thread with a series, awaited to its end, also after a cancel
    "gateway.manage.backup": 1,  # awaited to its end, also after a cancel
    "gateway.store.sqlite.engine.database": 1,  # awaited to its end, also after a cancel
    "gateway.store.sqlite.engine.writer": 1,  # the flusher, which turns every error into answers
    "gateway.forward.forwarder": 2,  # two waits that cannot fail, cancelled together
    "gateway.integrations.home_assistant.publisher": 2,  # the same
    "gateway.notify.sender": 1,  # the end of a message, awaited also after a cancel
    "gateway.transports.mqtt": 1,  # gathered with their errors
    "gateway.transports.mqtt_listener": 1,  # a handshake, which takes the errors of a network
    "gateway.tls.server": 2,  # accepting and handshakes, which take the errors of a network
    "gateway.cli.demo_brewery": 1,  # awaited to its end by the same function
}
"""Tasks outside a group by module, with the one who sees their end."""


def test_every_task_is_in_a_group_or_watched() -> None:
    found: dict[str, int] = {}
    for path in sorted(GATEWAY.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            owner = node.func.value
            named = owner.id if isinstance(owner, ast.Name) else ""
            if node.func.attr in MAKERS and named not in GROUPS:
                found[module_name(path)] = found.get(module_name(path), 0) + 1
    more = {module: count for module, count in found.items() if count > WATCHED.get(module, 0)}
    assert not more, f"put it into a TaskGroup, or see to its error and list it here: {more}"
