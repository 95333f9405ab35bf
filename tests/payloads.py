"""An iSpindel's reading, as it comes over HTTP and over MQTT."""

ISPINDEL_KEYS = ("tilt", "temperature", "temp_units", "battery", "gravity", "interval", "RSSI")


def ispindel(number: int = 1, *, name: str = "", gravity: str = "12.5", angle: str = "45.25") -> str:
    """Make the body that an iSpindel posts."""
    return (
        f'{{"name":"{name or f"spindle{number}"}","ID":{number},"angle":{angle},"temperature":20.5,'
        f'"temp_units":"C","battery":3.95,"gravity":{gravity},"interval":900,"RSSI":-61}}'
    )


def ispindel_mqtt(name: str, **values: str) -> list[tuple[str, str]]:
    """Make the seven messages of an iSpindel, topic and text, with some values changed."""
    texts = ("44.2", "20.4", "C", "3.96", "12.3", "900", "-61")
    named = dict(zip(ISPINDEL_KEYS, texts, strict=True)) | values
    return [(f"ispindel/{name}/{key}", text) for key, text in named.items()]
