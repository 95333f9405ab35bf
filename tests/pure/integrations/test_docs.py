"""The manual lists the entities that there are."""

from pathlib import Path

from gateway.integrations.home_assistant.payloads import BREW, DEVICE, GATEWAY, Component, target_component

MANUAL = Path(__file__).parents[3] / "docs" / "home-assistant.md"

NAMED_BY_CLASS = {
    "temperature": "Temperature",
    "battery": "Battery",
    "signal_strength": "Signal strength",
    "pressure": "Pressure",
}
"""Names that Home Assistant gives to entities without one."""


def row_of(component: Component) -> tuple[str, str, str]:
    name = component.name or NAMED_BY_CLASS[component.more["dev_cla"]]
    return name, component.platform, component.more.get("unit_of_meas", "")


def test_the_table_of_entities() -> None:
    table = MANUAL.read_text("utf-8").partition("<!-- entities -->\n")[2].partition("\n\n")[0]
    listed = {}
    for line in table.splitlines()[2:]:
        name, platform, unit, of, note = (cell.strip() for cell in line.strip("|").split("|"))
        listed[name, platform, unit] = of, note
    owners: dict[tuple[str, str, str], list[str]] = {("Alarm", "event", ""): ["device", "brew", "gateway"]}
    target = {"target": target_component("NAME", "name")}
    for owner, components in (("device", DEVICE), ("brew", BREW), ("gateway", {**GATEWAY, **target})):
        for component in components.values():
            owners.setdefault(row_of(component), []).append(owner)
    assert {row: of for row, (of, _) in listed.items()} == {row: ", ".join(of) for row, of in owners.items()}
    switched_off = {row_of(each) for each in DEVICE.values() if not each.more.get("en", True)}
    assert {row for row, (_, note) in listed.items() if "switched off" in note} == switched_off
    diagnostic = {
        row_of(each)
        for each in (*DEVICE.values(), *GATEWAY.values(), *target.values())
        if "ent_cat" in each.more
    }
    assert {row for row, (_, note) in listed.items() if "diagnostic" in note} == diagnostic
