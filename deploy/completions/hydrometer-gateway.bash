_hydrometer_gateway() {
    local found
    COMPREPLY=()
    if found=$(_HYDROMETER_GATEWAY_COMPLETE=bash "$1" "$2" "${COMP_LINE:0:COMP_POINT}" 2>/dev/null); then
        [[ -z $found ]] || mapfile -t COMPREPLY <<<"$found"
    else
        compopt -o default 2>/dev/null
    fi
}
complete -F _hydrometer_gateway hydrometer-gateway
