"""What each HTTP kind says at the golden point, and the keys it sends, as in devices.md."""

Words = tuple[str, str | None, str | None, str | None, str, str | None]
"""Name, id, gravity, its unit, temperature, its unit."""

SAID: dict[str, list[Words]] = {
    "gravitymon-get": [("gravmon5bd1ea", "5bd1ea", "1.0293", "G", "19.19", "C")],
    "gravitymon-gateway": [("gravmon5bd1ea", "5bd1ea", "1.0293", "G", "19.19", "C")],
    "pressuremon-http": [("pressmon5bd1ea", "5bd1ea", None, None, "19.19", "C")],
    "tilt-app": [("RED", "F6:BD:A0:01:00:00", "1.0293", "G", "66.6", "F")],
    "tilt-pico": [("GREEN", "F6:BD:A1:01:00:00", "1.029", "G", "67.0", "F")],
    "tiltbridge-http": [
        ("Red", None, "1.0290", "G", "67.0", "F"),
        ("Green", None, "1.0416", "G", "63.0", "F"),
    ],
    "tiltbridge-stream": [("Black", None, "1.0290", "G", "67.0", "F")],
    "tiltbridge-grainfather": [("pink-tilt-1000", None, "1.0290", "G", "67.0", "F")],
    "tiltbridge-brewstatus": [("Purple", None, "1.0290", "G", "67.0", "F")],
    "tiltbridge-sheets": [("Orange", None, "1.0290", "G", "67.0", "F")],
    "tiltbridge-taplist": [("Blue", None, "1.0290", "G", "67.0", "F")],
    "tiltbridge-1.0": [("Yellow", None, "1.0290", "G", "67.0", "F")],
    "tiltbridge-junior": [("Pink", None, "1.0293", "G", "66.6", "F")],
    "tilt-pitch": [("purple", None, "1.029", "G", "67", "F")],
    "tilt-pitch-stream": [("PitchTiltorange", None, "1.029", "G", "19.4", "C")],
    "tilt-pitch-grainfather": [("pitch-blue-1000", None, "1.029", "G", "67", "F")],
    "tilty": [("RED", "F6:BD:A2:01:00:00", "1.029", "G", "67", "F")],
    "pytilt": [("Black", None, "1.029", "G", "19.44", "C")],
    "rapt-webhook": [
        ("Yellow Pill 1000", "a160afb9-8c40-5640-80bb-41e4e0d69a34", "1.0293", "G", "19.2", "C")
    ],
    "rapt-get": [("Green Pill 1000", None, "1.0293", "G", "19.2", "C")],
    "rapt-meadtools": [("Blue Pill 1000", None, "1.0293", "G", "19.2", "C")],
    "plaato": [("Airlock 1000", "6017514", "1.029", "G", "19.2", "C")],
    "brewpiless-http": [("bpl-1000", None, "1.0293", "G", "19.2", "C")],
    "brewpiless-friend": [("brewpiless1000", None, "1.0293", "G", "19.2", "C")],
    "brewpiless-get": [("", None, "1.0293", "G", "19.2", None)],
    "fermentrack": [
        ("Fridge 1000", "2001", "1.029", "G", "66.8", "F"),
        ("Tilt 1000", "2002", "1.0293", "G", "66.6", "F"),
    ],
    "fermentrack-stream": [("Cellar Tilt 1000", None, "1.0293", "G", "66.6", "F")],
    "brew-bubbles": [("Bubble1000", None, None, None, "66.6", "F")],
    "emanometer-http": [("eMano1000", "6017514", None, None, "19.1875", "C")],
    "irelay": [("", None, None, None, "19.1875", "C")],
    "tcp-server-brewpiless": [("iSpindel100", None, "7.38", "P", "19.2", "C")],
    "torpedo": [("Hydrometer1000", "6017514", "1.029", "G", "19.2", "C")],
    "brewfather-stream": [("Controller-1000", None, "1.0293", "G", "19.2", "C")],
    "brewers-friend-stream": [("BrewBench1000", None, "7.4", "P", "19.2", "C")],
    "home-assistant": [("HomeAssistant", None, None, None, "19.2", "C")],
}

TILT_KEYS = "color temp tempUnit gravity weeks_on_battery sends_battery high_resolution fwVersion rssi"
GRAVITYMON_KEYS = "interval temperature temp_units gravity angle battery RSSI"
FORM_KEYS = "Timepoint SG Temp Color Beer Comment"
STREAM_KEYS = "name temp temp_unit gravity gravity_unit"
PITCH_KEYS = (
    "timestamp color name hd temp_fahrenheit temp_celsius original_gravity gravity degrees_plato"
    " alcohol_by_volume apparent_attenuation temp_valid gravity_valid"
)
TAPLIST_KEYS = "Color Temp SG temperature_unit gravity_unit"

# The keys of the samples in their order, those of inner objects in place.
KEYS: dict[str, str] = {
    "gravitymon-get": "name id token interval temperature temp-units gravity velocity angle battery rssi"
    " corr-gravity gravity-unit run-time",
    "gravitymon-gateway": f"name ID token {GRAVITYMON_KEYS}",
    "pressuremon-http": "name id token interval temperature temperature-unit pressure pressure-unit battery"
    " rssi run-time",
    "tilt-app": FORM_KEYS,
    "tilt-pico": FORM_KEYS,
    "tiltbridge-http": f"mdns_id tilts Red {TILT_KEYS} gsheets_name gsheets_link"
    f" Green {TILT_KEYS} gsheets_name gsheets_link",
    "tiltbridge-stream": f"{STREAM_KEYS} device_source",
    "tiltbridge-grainfather": "Temp Unit SG",
    "tiltbridge-brewstatus": "SG Temp Color Timepoint Beer Comment",
    "tiltbridge-sheets": "Beer Temp SG Color Comment Email tzOffset",
    "tiltbridge-taplist": TAPLIST_KEYS,
    "tiltbridge-1.0": f"mdns_id tilts Yellow {TILT_KEYS} gsheets_name gsheets_link",
    "tiltbridge-junior": "tilts color raw_gravity raw_temp rssi tilt_pro sends_battery weeks_on_battery"
    " firmware_version smoothed_gravity smoothed_temp smoothing_window temp_format tiltbridge_junior",
    "tilt-pitch": PITCH_KEYS,
    "tilt-pitch-stream": "name beer temp temp_unit gravity gravity_unity",
    "tilt-pitch-grainfather": "specific_gravity temperature unit",
    "tilty": "color gravity mac temp timestamp gravity_unit temp_unit",
    "pytilt": "color temp gravity timestamp",
    "rapt-webhook": "device_id device_name temperature gravity battery rssi",
    "rapt-get": "name temp temp_unit gravity battery rssi",
    "rapt-meadtools": "token name gravity temperature temp_units battery",
    "plaato": "device_name device_id temp_unit volume_unit bpm temp sg og abv co2_volume batch_volume"
    " bubbles",
    "brewpiless-http": "id beerTemp beerSet fridgeTemp fridgeSet roomTemp gravity tiltValue auxTemp extVolt"
    " timestamp tempUnit pressure mode humidity",
    "brewpiless-friend": f"{STREAM_KEYS} ph comment beer battery RSSI angle",
    "brewpiless-get": "b f g s",
    "fermentrack": "api_key version brewpi_devices name internal_id temp_format control_mode beer_temp"
    " fridge_temp beer_setting gravity gravity_sensors name internal_id sensor_type gravity temp temp_format"
    " battery",
    "fermentrack-stream": "report_source name device_source gravity gravity_unit temp temp_unit",
    "brew-bubbles": "api_name name bpm ambient temp temp_unit",
    "emanometer-http": "name ID temperature temp_units type pressure co2 interval RSSI num-openings"
    " open-time",
    "irelay": "temperature unit token",
    "tcp-server-brewpiless": "name angle temperature battery gravity",
    "torpedo": "name ID temperature angle battery fahrenheit currentGravity currentPlato batteryLevel"
    " updateIntervalMs",
    "brewfather-stream": "name temp aux_temp ext_temp temp_unit gravity gravity_unit pressure pressure_unit"
    " ph bpm comment beer battery device_source report_source device_state temp_target",
    "brewers-friend-stream": f"{STREAM_KEYS} ph comment beer battery RSSI angle",
    "home-assistant": "name temp temp_unit gravity",
}
