function __hydrometer_gateway
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    env _HYDROMETER_GATEWAY_COMPLETE=fish $program $words (commandline -ct) 2>/dev/null
    or __fish_complete_path (commandline -ct)
end
complete -c hydrometer-gateway -f -a '(__hydrometer_gateway)'
