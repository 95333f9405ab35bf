"""One batch of beer as its hydrometer sees it: a pure curve, the same for the same seed.

Time is in seconds since pitching, gravity in SG, temperature in degrees Celsius, battery in volts,
tilt in degrees, signal in dBm.  The shape is our own: a lag phase, a logistic drop from original to
final gravity, temperature drift with a daily swing, and small noise drawn from seed and time.
"""

import math
import random
from dataclasses import dataclass

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S

GRAVITY_NOISE_SG = 0.0002
TEMPERATURE_NOISE_C = 0.06
BATTERY_NOISE_V = 0.004
BATTERY_FULL_V = 4.15
BATTERY_EMPTY_V = 3.30
RSSI_NOISE_DBM = 2.5

UPRIGHT_DEG = 25.0  # floating in water
FLAT_DEG = 65.0  # at LIGHTEST_SG + GRAVITY_SPAN_SG and above
LIGHTEST_SG = 0.990
GRAVITY_SPAN_SG = 0.130


@dataclass(frozen=True, slots=True)
class Point:
    """What the sensors measure at one moment: SG, degrees Celsius, volts, degrees, dBm, seconds."""

    elapsed_s: float
    gravity_sg: float
    temperature_c: float
    battery_v: float
    tilt_deg: float
    rssi_dbm: int
    velocity_points_per_day: float  # change of gravity x 1000 over the last day
    awake_s: float  # how long the device is up for this report


class Fermentation:
    """A batch whose gravities, temperatures and timing follow from its seed."""

    def __init__(self, seed: str) -> None:
        draw = random.Random(f"{seed}|batch")
        self._seed = seed
        self.original_sg = draw.uniform(1.042, 1.068)
        self.final_sg = draw.uniform(1.008, 1.014)
        self.lag_s = draw.uniform(6, 14) * HOUR_S
        self._midpoint_s = self.lag_s + draw.uniform(24, 42) * HOUR_S
        self._steepness_s = draw.uniform(9, 14) * HOUR_S
        self._start_c = draw.uniform(18.0, 20.0)
        self._drift_c_per_day = draw.uniform(-0.15, 0.25)
        self._swing_c = draw.uniform(0.2, 0.6)
        self._swing_phase_s = draw.uniform(0, DAY_S)
        self._drain_v_per_day = draw.uniform(0.004, 0.010)
        self._signal_dbm = draw.uniform(-78, -55)

    def at(self, elapsed_s: float) -> Point:
        """Give the point at a time in seconds since pitching; the same time gives the same point."""
        noise = random.Random(f"{self._seed}|{float(elapsed_s)!r}")
        gravity = self.gravity_sg(elapsed_s) + _bounded_noise(noise, GRAVITY_NOISE_SG)
        return Point(
            elapsed_s=elapsed_s,
            gravity_sg=gravity,
            temperature_c=self._temperature_c(elapsed_s) + _bounded_noise(noise, TEMPERATURE_NOISE_C),
            battery_v=self._battery_v(elapsed_s) + _bounded_noise(noise, BATTERY_NOISE_V),
            tilt_deg=tilt_deg(gravity),
            rssi_dbm=round(self._signal_dbm + _bounded_noise(noise, RSSI_NOISE_DBM)),
            velocity_points_per_day=self._velocity(elapsed_s),
            awake_s=noise.uniform(3.2, 6.4),
        )

    def gravity_sg(self, elapsed_s: float) -> float:
        """Give the beer's gravity in SG without noise: flat while lagging, then a logistic drop."""
        if elapsed_s <= self.lag_s:
            return self.original_sg
        done_at_lag = self._logistic(self.lag_s)
        done = (self._logistic(elapsed_s) - done_at_lag) / (1 - done_at_lag)
        return self.original_sg - (self.original_sg - self.final_sg) * done

    def _logistic(self, elapsed_s: float) -> float:
        return 0.5 * (1 + math.tanh((elapsed_s - self._midpoint_s) / (2 * self._steepness_s)))

    def _temperature_c(self, elapsed_s: float) -> float:
        swing = math.sin(2 * math.pi * (elapsed_s + self._swing_phase_s) / DAY_S)
        # The drift ends after ten days: a cellar does not warm for ever.
        return self._start_c + self._drift_c_per_day * min(elapsed_s / DAY_S, 10) + self._swing_c * swing

    def _battery_v(self, elapsed_s: float) -> float:
        return max(BATTERY_FULL_V - self._drain_v_per_day * elapsed_s / DAY_S, BATTERY_EMPTY_V)

    def _velocity(self, elapsed_s: float) -> float:
        window_s = min(elapsed_s, DAY_S)
        if window_s <= 0:
            return 0.0
        change = self.gravity_sg(elapsed_s) - self.gravity_sg(elapsed_s - window_s)
        return change * 1000 * DAY_S / window_s


def tilt_deg(gravity_sg: float) -> float:
    """Give the tilt in degrees at a gravity in SG: it lies flatter the heavier the wort."""
    share = (gravity_sg - LIGHTEST_SG) / GRAVITY_SPAN_SG
    # The square root is the bend that real calibrations show; clamped to what a cylinder can do.
    return UPRIGHT_DEG + (FLAT_DEG - UPRIGHT_DEG) * math.sqrt(min(max(share, 0.0), 1.0))


def plato(gravity_sg: float) -> float:
    """Convert SG to degrees Plato with the usual cubic."""
    return -616.868 + 1111.14 * gravity_sg - 630.272 * gravity_sg**2 + 135.997 * gravity_sg**3


def _bounded_noise(noise: random.Random, sigma: float) -> float:
    """Draw normal noise, cut at three sigma so that a reading is never absurd."""
    return min(max(noise.gauss(0, sigma), -3 * sigma), 3 * sigma)
