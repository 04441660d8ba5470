#!/bin/sh
# chassis.sh SOCKET get power | set power 0|1 | …: what a controller runs to reach the machine's power, which the test holds.
# An answer is printed as ipmi_sim wants it; one that begins with `fault` is its error.
socket=$1
shift
answer=$(printf '%s\n' "$*" | socat -t 60 - "UNIX-CONNECT:$socket" 2>/dev/null) || answer='fault: nothing behind this controller'
case $answer in
  done) ;; # ipmi_sim takes any word after an order for a complaint
  '' | fault*) echo "${answer:-fault: no answer}"; exit 1 ;;
  *) echo "$answer" ;;
esac
