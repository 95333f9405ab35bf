"""Number text as small devices print it: 32-bit floats, ArduinoJson's style and fixed decimals.

Sources: bblanchon/ArduinoJson (`JsonSerializer`, `TextFormatter`) and esp8266/Arduino
`cores/esp8266/core_esp8266_noniso.cpp` (`dtostrf`), as devices.md sections 4.2 and 4.3 give them.
"""

import math
import struct
from decimal import ROUND_HALF_UP, Decimal

_FLOAT_DIGITS = 7
_LARGE = 1e7  # from here on ArduinoJson writes an exponent
_SMALL = 1e-5  # down to here too
_DS18B20_STEP_C = 0.0625  # 12-bit resolution


def as_float32(value: float) -> float:
    """Round to the 32-bit float that the firmware computes with."""
    narrow: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return narrow


def arduino_json(value: float) -> str:
    """Print as ArduinoJson does: at most seven digits, no trailing zeros, NaN and infinity `null`."""
    if not math.isfinite(value):
        return "null"
    number = as_float32(value)
    size = abs(number)
    if size != 0 and not _SMALL < size < _LARGE:
        mantissa, _, exponent = f"{number:.{_FLOAT_DIGITS - 1}e}".partition("e")
        return f"{_trimmed(mantissa)}e{int(exponent)}"
    whole_digits = len(str(int(size)))  # a lone 0 before the point counts as one
    return _trimmed(f"{number:.{_FLOAT_DIGITS - whole_digits}f}")


def fixed(value: float, decimals: int) -> str:
    """Print with fixed decimals as `dtostrf` does: halves away from zero, `nan`, `inf`, no exponent."""
    if not math.isfinite(value):
        return str(value)
    step = Decimal(1).scaleb(-decimals)
    return format(Decimal(as_float32(value)).quantize(step, ROUND_HALF_UP), "f")


def ds18b20(temperature_c: float) -> float:
    """Round degrees Celsius to the steps of the DS18B20 probe that both ESP devices use."""
    return round(temperature_c / _DS18B20_STEP_C) * _DS18B20_STEP_C


def _trimmed(digits: str) -> str:
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return "0" if digits == "-0" else digits
