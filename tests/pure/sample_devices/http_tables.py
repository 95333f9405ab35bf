"""The keys that documented HTTP kinds send, as in devices.md."""

TILT_KEYS = "color temp tempUnit gravity weeks_on_battery sends_battery high_resolution fwVersion rssi"
TILT_2_KEYS = (
    "color temp tempUnit uncalibratedGravity calibratedGravity latestGravity weeks_on_battery sends_battery"
    " high_resolution fwVersion rssi mac gsheets_name gsheets_link"
)
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
    "pressuremon-two": "name id token interval temperature temperature-unit pressure pressure1 pressure-unit"
    " battery rssi run-time",
    "pressuremon-get": "name id token interval temperature temperature-unit pressure pressure-unit battery"
    " rssi run-time",
    "tilt-app": FORM_KEYS,
    "tilt-pico-w": "Timepoint Temp SG Beer Color",
    "tilt-pico": FORM_KEYS,
    "tiltbridge-http": f"mdns_id tilts Red {TILT_KEYS} gsheets_name gsheets_link"
    f" Green {TILT_KEYS} gsheets_name gsheets_link",
    "tiltbridge-stream": f"{STREAM_KEYS} device_source",
    "tiltbridge-grainfather": "Temp Unit SG",
    "tiltbridge-brewstatus": "SG Temp Color Timepoint Beer Comment",
    "tiltbridge-sheets": "Beer Temp SG Color Comment Email tzOffset",
    "tiltbridge-taplist": TAPLIST_KEYS,
    "tiltbridge-1.0": f"mdns_id tilts Yellow {TILT_KEYS} gsheets_name gsheets_link",
    "tiltbridge-2": f"apiKey deviceID tilts {TILT_2_KEYS} {TILT_2_KEYS} version",
    "tiltbridge-2-local": f"mdns_id tilts Red {TILT_KEYS} mac gsheets_name gsheets_link"
    f" Green {TILT_KEYS} mac gsheets_name gsheets_link",
    "tiltbridge-2-stream": f"{STREAM_KEYS} device_source",
    "tiltbridge-junior": "tilts color raw_gravity raw_temp rssi tilt_pro sends_battery weeks_on_battery"
    " firmware_version smoothed_gravity smoothed_temp smoothing_window temp_format tiltbridge_junior",
    "tilt-pitch": PITCH_KEYS,
    "tilt-pitch-stream": "name beer temp temp_unit gravity gravity_unity",
    "tilt-pitch-friend": "name device_source gravity og beer temp_unit temp gravity_unit",
    "tilt-pitch-taplist": TAPLIST_KEYS,
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
    "fermentrack-old": "api_key brewpi name internal_id temp_format beer_temp fridge_temp gravity",
    "fermentrack-grainfather": "report_source name token ID angle battery interval RSSI gravity temperature"
    " temp_units",
    "fermentrack-thingspeak": "api_key version field1 field2 field3 field4 field5 field6 field7",
    "fermentrack-stream": "report_source name device_source gravity gravity_unit temp temp_unit",
    "brew-bubbles": "api_name name bpm ambient temp temp_unit",
    "emanometer-http": "name ID temperature temp_units type pressure co2 interval RSSI num-openings"
    " open-time",
    "irelay": "temperature unit token",
    "tcp-server-brewpiless": "name angle temperature battery gravity",
    "tcp-server-craftbeerpi": "name angle temperature battery",
    "hydrom": "name token angle temperature battery gravity tilt_SG RSSI",
    "torpedo": "name ID temperature angle battery fahrenheit currentGravity currentPlato batteryLevel"
    " updateIntervalMs",
    "brewfather-stream": "name temp aux_temp ext_temp temp_unit gravity gravity_unit pressure pressure_unit"
    " ph bpm comment beer battery device_source report_source device_state temp_target",
    "brewers-friend-stream": f"{STREAM_KEYS} ph comment beer battery RSSI angle",
    "home-assistant": "name temp temp_unit gravity",
}
