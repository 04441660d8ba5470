#!/bin/sh
# reservation: takes a node's right to write to disks that several nodes share, by SCSI-3 persistent reservations and sg_persist
# (sg3-utils). A pod of the fence agent `job` runs it on a node that is left:
#   HOLDFAST_ACTION   off, on or status
#   HOLDFAST_PLUG     the key of the node that is meant, as 0x1a2b3c01
#   DISKS             the disks, by their paths, blanks between them
#   KEY_FILE          holds the key of the node that it runs on (/etc/holdfast/reservation-key)
# Each node says `reservation.sh register` once in a boot, before its kubelet starts: only the node itself can register its key, and
# one that could do so again in the same boot would undo its own fence. So `on` switches nothing, it tells whether that was done.
#
# A disk is closed to a node when its key is not registered and a reservation stands. Without one whoever is not registered may write,
# so that an absent key alone is not off.
set -u
PATH=$PATH:/usr/sbin:/usr/bin:/sbin:/bin
: "${DISKS:=}" "${KEY_FILE:=/etc/holdfast/reservation-key}" "${ONCE:=/run/holdfast-reservation}"
registrants_only=5 # write exclusive, registrants only: every array knows it
attention=6 # the first answer after something has changed, to whatever is asked: nothing was done

say() { # STATE EXIT EVIDENCE [REASON]
  printf 'holdfast {"v":1,"state":"%s","evidence":"%s"%s}\n' "$1" "$3" "${4:+,\"reason\":\"$4\"}"
  exit "$2"
}
fail() { say unknown 1 "$2" "$1"; }

# No leading zero and no capitals: so sg_persist prints it, and keys are compared as they are printed.
key_form() { case $1 in 0x[1-9a-f]*) [ "${#1}" -le 18 ] && [ -z "$(printf %s "${1#0x}" | tr -d 0-9a-f)" ] ;; *) false ;; esac; }

own_key() {
  own=$(cat "$KEY_FILE" 2>/dev/null) || fail config "$KEY_FILE cannot be read"
  key_form "$own" || fail config "$KEY_FILE holds no key of the form 0x1a2b3c01"
}

ask() {
  for try in 1 2 3; do
    told=$(sg_persist --no-inquiry "$@" 2>&1)
    ended=$?
    [ "$ended" -eq "$attention" ] || break
  done
  printf '%s\n' "$told"
  return "$ended"
}

# Prints on, off, or why it is neither. An answer that is not understood is neither.
look() { # DISK KEY
  keys=$(ask --in --read-keys "$1") || { echo "its keys cannot be read"; return; }
  case $keys in *'registered reservation key'*) ;; *) echo "its answer is not understood"; return ;; esac
  if printf '%s\n' "$keys" | grep -qx " *$2"; then echo on; return; fi
  held=$(ask --in --read-reservation "$1") || { echo "its reservation cannot be read"; return; }
  # Of whatever type: each keeps out who is not registered.
  case $held in *'Reservation follows'*) echo off ;; *) echo "no reservation stands, so whoever is not registered may write" ;; esac
}

# On while one disk is open to the node, off when all are closed.
status() {
  open='' doubt=''
  for disk in $DISKS; do
    found=$(look "$disk" "$HOLDFAST_PLUG")
    case $found in on) open=$disk ;; off) ;; *) doubt="$disk: $found" ;; esac
  done
  [ -z "$open" ] || say on 0 "$HOLDFAST_PLUG is registered at $open"
  [ -z "$doubt" ] || fail device "$doubt"
  say off 2 "$HOLDFAST_PLUG is registered at none of $DISKS, and each is reserved"
}

off() {
  own_key
  [ "$own" != "$HOLDFAST_PLUG" ] || fail config "this is the node that is meant"
  for disk in $DISKS; do
    # Each by itself: one that answers nothing must not keep the others open.
    [ "$(look "$disk" "$HOLDFAST_PLUG")" = on ] || continue
    # Abort too: what the node has sent and the disk not done yet must not be done later.
    ask --out --preempt-abort --param-rk="$own" --param-sark="$HOLDFAST_PLUG" --prout-type="$registrants_only" "$disk" > /dev/null || refused=$disk
  done
  for disk in $DISKS; do
    found=$(look "$disk" "$HOLDFAST_PLUG")
    [ "$found" = off ] || fail device "$disk: $([ "$found" = on ] && echo "$HOLDFAST_PLUG is still registered${refused:+, the order was refused: is $own registered there?}" || echo "$found")"
  done
  say off 0 "$HOLDFAST_PLUG is registered at none of $DISKS, and each is reserved"
}

on() {
  for disk in $DISKS; do
    found=$(look "$disk" "$HOLDFAST_PLUG")
    [ "$found" = on ] || fail device "$disk: $([ "$found" = off ] && echo "the node has not registered itself yet, which it does when it boots" || echo "$found")"
  done
  say on 0 "$HOLDFAST_PLUG is registered at $DISKS"
}

register() {
  own_key
  mkdir "$ONCE" 2>/dev/null || fail config "$ONCE is there: a node registers once in a boot"
  for disk in $DISKS; do
    ask --out --register-ignore --param-sark="$own" "$disk" > /dev/null || fail device "$disk: the key is not taken"
    # Of two nodes at once one is refused, and finds the other's reservation.
    ask --out --reserve --param-rk="$own" --prout-type="$registrants_only" "$disk" > /dev/null
    [ "$(look "$disk" "$own")" = on ] && [ "$(look "$disk" 0x0)" = off ] || fail device "$disk: registered and not reserved"
  done
  say on 0 "$own is registered at $DISKS"
}

[ -n "$DISKS" ] || fail config "DISKS names no disk"
command -v sg_persist > /dev/null || fail config "sg_persist is not installed"
[ "${1:-}" != register ] || register
key_form "${HOLDFAST_PLUG:-}" || fail config "the plug is no key of the form 0x1a2b3c01"
case ${HOLDFAST_ACTION:-} in
  off) off ;;
  on) on ;;
  status) status ;;
  *) fail config "this action is not known" ;;
esac
