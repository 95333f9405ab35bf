"""The places of BeerJSON 1.0's members in BeerXML, by path within their object.

A member in no table has no place in BeerXML. The facts come from the JSON schema. The tables also have
members of the ingredient itself, and of drafts of the standard, because programs write them into additions.
"""

from collections.abc import Mapping

RECIPE: Mapping[str, str] = {
    "name": "NAME",
    "type": "TYPE",
    "author": "BREWER",
    "coauthor": "ASST_BREWER",
    "created": "DATE",
    "notes": "NOTES",
    "batch_size": "BATCH_SIZE",
    "efficiency.brewhouse": "EFFICIENCY",
    "boil.pre_boil_size": "BOIL_SIZE",
    "boil.boil_time": "BOIL_TIME",
    "original_gravity": "OG",
    "final_gravity": "FG",
    "alcohol_by_volume": "ABV",
    "ibu_estimate.method": "IBU_METHOD",
    "ibu_estimate.value": "IBU",
    "color_estimate": "EST_COLOR",
    "carbonation": "CARBONATION",
    "taste.notes": "TASTE_NOTES",
    "taste.rating": "TASTE_RATING",
    "calories_per_pint": "CALORIES",
}

FERMENTABLE: Mapping[str, str] = {
    "name": "NAME",
    "type": "TYPE",
    "origin": "ORIGIN",
    "producer": "SUPPLIER",
    "supplier": "SUPPLIER",
    "amount": "AMOUNT",
    "color": "COLOR",
    "yield.fine_grind": "YIELD",
    "yield.potential": "POTENTIAL",
    "yield.fine_coarse_difference": "COARSE_FINE_DIFF",
    "notes": "NOTES",
    "moisture": "MOISTURE",
    "diastatic_power": "DIASTATIC_POWER",
    "protein": "PROTEIN",
    "max_in_batch": "MAX_IN_BATCH",
    "recommend_mash": "RECOMMEND_MASH",
    "add_after_boil": "ADD_AFTER_BOIL",
}

HOP: Mapping[str, str] = {
    "name": "NAME",
    "origin": "ORIGIN",
    "form": "FORM",
    "use": "USE",
    "alpha_acid": "ALPHA",
    "beta_acid": "BETA",
    "amount": "AMOUNT",
    "type": "TYPE",
    "notes": "NOTES",
    "percent_lost": "HSI",
    "substitutes": "SUBSTITUTES",
    "oil_content.humulene": "HUMULENE",
    "oil_content.caryophyllene": "CARYOPHYLLENE",
    "oil_content.cohumulone": "COHUMULONE",
    "oil_content.myrcene": "MYRCENE",
}

YEAST: Mapping[str, str] = {
    "name": "NAME",
    "type": "TYPE",
    "form": "FORM",
    "producer": "LABORATORY",
    "product_id": "PRODUCT_ID",
    "amount": "AMOUNT",
    "attenuation": "ATTENUATION",
    "times_cultured": "TIMES_CULTURED",
    "temperature_range.minimum": "MIN_TEMPERATURE",
    "temperature_range.maximum": "MAX_TEMPERATURE",
    "flocculation": "FLOCCULATION",
    "notes": "NOTES",
    "best_for": "BEST_FOR",
    "max_reuse": "MAX_REUSE",
}

MISC: Mapping[str, str] = {
    "name": "NAME",
    "type": "TYPE",
    "amount": "AMOUNT",
    "use": "USE",
    "use_for": "USE_FOR",
    "notes": "NOTES",
}

WATER: Mapping[str, str] = {
    "name": "NAME",
    "amount": "AMOUNT",
    "calcium": "CALCIUM",
    "bicarbonate": "BICARBONATE",
    "sulfate": "SULFATE",
    "chloride": "CHLORIDE",
    "sodium": "SODIUM",
    "magnesium": "MAGNESIUM",
    "pH": "PH",
    "notes": "NOTES",
}

STYLE: Mapping[str, str] = {
    "name": "NAME",
    "category": "CATEGORY",
    "category_number": "CATEGORY_NUMBER",
    "style_letter": "STYLE_LETTER",
    "style_guide": "STYLE_GUIDE",
    "type": "TYPE",
    "original_gravity.minimum": "OG_MIN",
    "original_gravity.maximum": "OG_MAX",
    "final_gravity.minimum": "FG_MIN",
    "final_gravity.maximum": "FG_MAX",
    "international_bitterness_units.minimum": "IBU_MIN",
    "international_bitterness_units.maximum": "IBU_MAX",
    "color.minimum": "COLOR_MIN",
    "color.maximum": "COLOR_MAX",
    "carbonation.minimum": "CARB_MIN",
    "carbonation.maximum": "CARB_MAX",
    "alcohol_by_volume.minimum": "ABV_MIN",
    "alcohol_by_volume.maximum": "ABV_MAX",
    "notes": "NOTES",
    "ingredients": "INGREDIENTS",
    "examples": "EXAMPLES",
    "overall_impression": "PROFILE",
}

MASH: Mapping[str, str] = {"name": "NAME", "grain_temperature": "GRAIN_TEMP", "notes": "NOTES"}

MASH_STEP: Mapping[str, str] = {
    "name": "NAME",
    "type": "TYPE",
    "amount": "INFUSE_AMOUNT",
    "step_temperature": "STEP_TEMP",
    "step_time": "STEP_TIME",
    "ramp_time": "RAMP_TIME",
    "end_temperature": "END_TEMP",
    "description": "DESCRIPTION",
    "water_grain_ratio": "WATER_GRAIN_RATIO",
    "infuse_temperature": "INFUSE_TEMP",
}

FIELDS: Mapping[str, Mapping[str, str]] = {
    "RECIPE": RECIPE,
    "FERMENTABLE": FERMENTABLE,
    "HOP": HOP,
    "YEAST": YEAST,
    "MISC": MISC,
    "WATER": WATER,
    "STYLE": STYLE,
    "MASH": MASH,
    "MASH_STEP": MASH_STEP,
}
"""Elements by record and path."""

ADDITIONS = {
    "fermentable_additions": ("FERMENTABLES", "FERMENTABLE"),
    "hop_additions": ("HOPS", "HOP"),
    "miscellaneous_additions": ("MISCS", "MISC"),
    "culture_additions": ("YEASTS", "YEAST"),
    "water_additions": ("WATERS", "WATER"),
}
"""Record sets by the arrays of ingredients."""

USES: Mapping[str, Mapping[str, str]] = {
    "HOP": {
        "add_to_mash": "Mash",
        "add_to_boil": "Boil",
        "add_to_fermentation": "Dry Hop",
        "add_to_package": "Package",
    },
    "MISC": {
        "add_to_mash": "Mash",
        "add_to_boil": "Boil",
        "add_to_fermentation": "Primary",
        "add_to_package": "Bottling",
    },
}
"""USE by record and `timing.use`."""

STAGES = ("PRIMARY", "SECONDARY", "TERTIARY")
"""Fermentation steps that BeerXML has, by the first word of their elements."""
