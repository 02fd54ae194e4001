# SPDX-License-Identifier: Apache-2.0
# fish completion for affinityctl(1), which says itself what may stand next.
function __affinityctl_next
    set -l words (commandline -opc)
    set -l found (command $words[1] --complete $words[2..-1] (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c affinityctl -f -a '(__affinityctl_next)'
