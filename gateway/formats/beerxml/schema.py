"""BeerXML 1.0 as data: every record with its elements in the standard's order, elements for display last.

Facts from the standard's text (beerxml.com), as api-decisions section 11 lists them. A default makes an
element required: the default completes a record that lacks the element.
"""

from collections.abc import Mapping

from gateway.formats.beerxml.elements import (
    FERMENTABLE_TYPE,
    HOP_FORM,
    HOP_TYPE,
    HOP_USE,
    MASH_STEP_TYPE,
    MISC_TYPE,
    MISC_USE,
    RECIPE_IBU_METHOD,
    RECIPE_TYPE,
    STYLE_TYPE,
    UNKNOWN,
    YEAST_FLOCCULATION,
    YEAST_FORM,
    YEAST_TYPE,
    Element,
    booleans,
    integers,
    numbers,
    record,
    texts,
)

HOP = record(
    UNKNOWN,
    numbers("ALPHA", "%", "0"),
    numbers("AMOUNT", "kg", "0"),
    HOP_USE,
    numbers("TIME", "min", "0"),
    texts("NOTES"),
    HOP_TYPE,
    HOP_FORM,
    numbers("BETA HSI", "%"),
    texts("ORIGIN SUBSTITUTES"),
    numbers("HUMULENE CARYOPHYLLENE COHUMULONE MYRCENE", "%"),
    texts("DISPLAY_AMOUNT INVENTORY DISPLAY_TIME"),
)

FERMENTABLE = record(
    UNKNOWN,
    FERMENTABLE_TYPE,
    numbers("AMOUNT", "kg", "0"),
    numbers("YIELD", "%", "75"),
    numbers("COLOR", "SRM", "0"),
    booleans("ADD_AFTER_BOIL"),
    texts("ORIGIN SUPPLIER NOTES"),
    numbers("COARSE_FINE_DIFF MOISTURE", "%"),
    numbers("DIASTATIC_POWER", "Lintner"),
    numbers("PROTEIN MAX_IN_BATCH", "%"),
    booleans("RECOMMEND_MASH"),
    numbers("IBU_GAL_PER_LB"),
    texts("DISPLAY_AMOUNT POTENTIAL INVENTORY DISPLAY_COLOR"),
)

YEAST = record(
    UNKNOWN,
    YEAST_TYPE,
    YEAST_FORM,
    numbers("AMOUNT", "kg or l", "0"),
    booleans("AMOUNT_IS_WEIGHT"),
    texts("LABORATORY PRODUCT_ID"),
    numbers("MIN_TEMPERATURE MAX_TEMPERATURE", "C"),
    YEAST_FLOCCULATION,
    numbers("ATTENUATION", "%"),
    texts("NOTES BEST_FOR"),
    integers("TIMES_CULTURED MAX_REUSE"),
    booleans("ADD_TO_SECONDARY"),
    texts("DISPLAY_AMOUNT DISP_MIN_TEMP DISP_MAX_TEMP INVENTORY CULTURE_DATE"),
)

MISC = record(
    UNKNOWN,
    MISC_TYPE,
    MISC_USE,
    numbers("TIME", "min", "0"),
    numbers("AMOUNT", "kg or l", "0"),
    booleans("AMOUNT_IS_WEIGHT"),
    texts("USE_FOR NOTES DISPLAY_AMOUNT INVENTORY DISPLAY_TIME"),
)

WATER = record(
    UNKNOWN,
    numbers("AMOUNT", "l", "0"),
    numbers("CALCIUM BICARBONATE SULFATE CHLORIDE SODIUM MAGNESIUM", "ppm", "0"),
    numbers("PH", "pH"),
    texts("NOTES DISPLAY_AMOUNT"),
)

STYLE = record(
    UNKNOWN,
    Element("CATEGORY", default=UNKNOWN),
    Element("CATEGORY_NUMBER", default="0"),
    Element("STYLE_LETTER", default=""),
    Element("STYLE_GUIDE", default=UNKNOWN),
    STYLE_TYPE,
    numbers("OG_MIN OG_MAX FG_MIN FG_MAX", "SG", "1.000"),
    numbers("IBU_MIN IBU_MAX", "IBU", "0"),
    numbers("COLOR_MIN COLOR_MAX", "SRM", "0"),
    numbers("CARB_MIN CARB_MAX", "vols"),
    numbers("ABV_MIN ABV_MAX", "%"),
    texts("NOTES PROFILE INGREDIENTS EXAMPLES DISPLAY_OG_MIN DISPLAY_OG_MAX DISPLAY_FG_MIN DISPLAY_FG_MAX"),
    texts("DISPLAY_COLOR_MIN DISPLAY_COLOR_MAX OG_RANGE FG_RANGE IBU_RANGE CARB_RANGE COLOR_RANGE ABV_RANGE"),
)

MASH_STEP = record(
    UNKNOWN,
    MASH_STEP_TYPE,
    Element("INFUSE_AMOUNT", "number", "0", "l", only=("Infusion",)),
    numbers("STEP_TEMP", "C", "0"),
    numbers("STEP_TIME", "min", "0"),
    numbers("RAMP_TIME", "min"),
    numbers("END_TEMP", "C"),
    texts("DESCRIPTION WATER_GRAIN_RATIO DECOCTION_AMT INFUSE_TEMP DISPLAY_STEP_TEMP DISPLAY_INFUSE_AMT"),
)

MASH = record(
    "Mash",
    numbers("GRAIN_TEMP", "C", "20"),
    Element("MASH_STEPS", "set", "", record="MASH_STEP"),
    texts("NOTES"),
    numbers("TUN_TEMP SPARGE_TEMP", "C"),
    numbers("PH", "pH"),
    numbers("TUN_WEIGHT", "kg"),
    numbers("TUN_SPECIFIC_HEAT", "cal/(g C)"),
    booleans("EQUIP_ADJUST"),
    texts("DISPLAY_GRAIN_TEMP DISPLAY_TUN_TEMP DISPLAY_SPARGE_TEMP DISPLAY_TUN_WEIGHT"),
)

EQUIPMENT = record(
    UNKNOWN,
    numbers("BOIL_SIZE BATCH_SIZE", "l", "0"),
    numbers("TUN_VOLUME", "l"),
    numbers("TUN_WEIGHT", "kg"),
    numbers("TUN_SPECIFIC_HEAT", "cal/(g C)"),
    numbers("TOP_UP_WATER TRUB_CHILLER_LOSS", "l"),
    numbers("EVAP_RATE", "%"),
    numbers("BOIL_TIME", "min"),
    booleans("CALC_BOIL_VOLUME"),
    numbers("LAUTER_DEADSPACE TOP_UP_KETTLE", "l"),
    numbers("HOP_UTILIZATION", "%"),
    texts("NOTES DISPLAY_BOIL_SIZE DISPLAY_BATCH_SIZE DISPLAY_TUN_VOLUME DISPLAY_TUN_WEIGHT"),
    texts("DISPLAY_TOP_UP_WATER DISPLAY_TRUB_CHILLER_LOSS DISPLAY_LAUTER_DEADSPACE DISPLAY_TOP_UP_KETTLE"),
)

RECIPE = record(
    "Unnamed recipe",
    RECIPE_TYPE,
    Element("STYLE", "record", "", record="STYLE"),
    Element("EQUIPMENT", "record", record="EQUIPMENT"),
    Element("BREWER", default=UNKNOWN),
    texts("ASST_BREWER"),
    numbers("BATCH_SIZE BOIL_SIZE", "l", "0"),
    numbers("BOIL_TIME", "min", "60"),
    Element("EFFICIENCY", "number", "70", "%", only=("All Grain", "Partial Mash")),
    Element("HOPS", "set", "", record="HOP"),
    Element("FERMENTABLES", "set", "", record="FERMENTABLE"),
    Element("MISCS", "set", "", record="MISC"),
    Element("YEASTS", "set", "", record="YEAST"),
    Element("WATERS", "set", "", record="WATER"),
    Element("MASH", "record", "", record="MASH"),
    texts("NOTES TASTE_NOTES"),
    numbers("TASTE_RATING"),
    numbers("OG FG", "SG"),
    integers("FERMENTATION_STAGES"),
    numbers("PRIMARY_AGE", "day"),
    numbers("PRIMARY_TEMP", "C"),
    numbers("SECONDARY_AGE", "day"),
    numbers("SECONDARY_TEMP", "C"),
    numbers("TERTIARY_AGE", "day"),
    numbers("TERTIARY_TEMP", "C"),
    numbers("AGE", "day"),
    numbers("AGE_TEMP", "C"),
    texts("DATE"),
    numbers("CARBONATION", "vols"),
    booleans("FORCED_CARBONATION"),
    texts("PRIMING_SUGAR_NAME"),
    numbers("CARBONATION_TEMP", "C"),
    numbers("PRIMING_SUGAR_EQUIV KEG_PRIMING_FACTOR"),
    Element("EST_OG", unit="SG"),
    Element("EST_FG", unit="SG"),
    texts("EST_COLOR"),
    numbers("IBU", "IBU"),
    RECIPE_IBU_METHOD,
    numbers("EST_ABV ABV ACTUAL_EFFICIENCY", "%"),
    texts("CALORIES DISPLAY_BATCH_SIZE DISPLAY_BOIL_SIZE DISPLAY_OG DISPLAY_FG DISPLAY_PRIMARY_TEMP"),
    texts("DISPLAY_SECONDARY_TEMP DISPLAY_TERTIARY_TEMP DISPLAY_AGE_TEMP CARBONATION_USED DISPLAY_CARB_TEMP"),
)

RECORDS: Mapping[str, Mapping[str, Element]] = {
    "RECIPE": RECIPE,
    "HOP": HOP,
    "FERMENTABLE": FERMENTABLE,
    "YEAST": YEAST,
    "MISC": MISC,
    "WATER": WATER,
    "STYLE": STYLE,
    "MASH": MASH,
    "MASH_STEP": MASH_STEP,
    "EQUIPMENT": EQUIPMENT,
}
"""Elements by record and name."""

SETS: Mapping[str, str] = {
    "RECIPES": "RECIPE",
    "HOPS": "HOP",
    "FERMENTABLES": "FERMENTABLE",
    "YEASTS": "YEAST",
    "MISCS": "MISC",
    "WATERS": "WATER",
    "STYLES": "STYLE",
    "MASHS": "MASH",
    "EQUIPMENTS": "EQUIPMENT",
}
"""Record sets that may be the root of a document."""

BEERSMITH_PREFIXES: Mapping[str, str] = {
    "RECIPE": "F_R_",
    "HOP": "F_H_",
    "FERMENTABLE": "F_G_",
    "YEAST": "F_Y_",
    "MISC": "F_M_",
    "WATER": "F_W_",
    "STYLE": "F_S_",
    "MASH": "F_MH_",
    "MASH_STEP": "F_MS_",
    "EQUIPMENT": "F_E_",
}
"""The prefixes of BeerSmith's own names in a record; only texts mean the same as in BeerXML."""

YIELDS: Mapping[str, str] = {
    "Grain": "75",
    "Sugar": "100",
    "Extract": "78",
    "Dry Extract": "95",
    "Adjunct": "70",
}
"""Usual extract yield in percent of weight, by TYPE of fermentable."""
