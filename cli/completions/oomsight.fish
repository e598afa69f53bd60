complete -c oomsight -a '(oomsight completion words (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
