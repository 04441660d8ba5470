#!/usr/bin/env bash
# Process 1 of a machine of the lab that becomes a real systemd, already in namespaces of its own (mount, pid, net, uts, ipc, cgroup). It makes of a folder
# a machine: root disk, kernel file systems, a network cable; then systemd does the rest.
#
#   systemd-init.sh NAME ADDRESS BOOT_ID DISK BINARIES IMAGE
#
# What systemd does to the machine it may do to these namespaces alone. Its power is theirs: inside of a process namespace reboot(2) ends that and nothing
# else, and even this it may not call. The kernel's settings, its devices and its request key are out of its reach.
set -euo pipefail
name=$1 address=$2 disk=$4 binaries=$5 image=$6

if [ -z "${bounded:-}" ]; then
  bounded=yes exec setpriv --bounding-set -sys_boot,-sys_module,-sys_time,-sys_rawio,-syslog,-mknod,-wake_alarm bash "$0" "$@"
fi

root_disk() {
  mount --bind "$disk" "$disk"
  mount --bind "$binaries/systemd" "$disk/usr"
  mount -o remount,bind,ro "$disk/usr"
  mount --bind "$image" "$disk/opt/image"
  mount -o remount,bind,ro "$disk/opt/image"
}

kernel_file_systems() {
  local device
  mount -t proc proc "$disk/proc"
  mount --bind "$disk/proc/sys" "$disk/proc/sys"
  mount -o remount,bind,ro "$disk/proc/sys"
  if [ -e "$disk/proc/sysrq-trigger" ]; then mount --bind /dev/null "$disk/proc/sysrq-trigger"; fi
  mount -t sysfs -o ro sysfs "$disk/sys"
  mount -t tmpfs -o mode=755 tmpfs "$disk/sys/fs/cgroup"
  # Mounted anew inside the cgroup namespace: its own group is the root, and no process outside is seen from there.
  mkdir "$disk/sys/fs/cgroup/systemd"
  mount -t cgroup -o none,name=systemd cgroup "$disk/sys/fs/cgroup/systemd"
  mount -t tmpfs -o mode=755 tmpfs "$disk/dev"
  for device in null zero full random urandom tty; do
    touch "$disk/dev/$device"
    mount --bind "/dev/$device" "$disk/dev/$device"
  done
  mkdir "$disk/dev/pts" "$disk/dev/shm"
  mount -t devpts -o newinstance,ptmxmode=666 devpts "$disk/dev/pts"
  ln -s pts/ptmx "$disk/dev/ptmx"
  ln -s /proc/self/fd "$disk/dev/fd"
  mount -t tmpfs -o mode=1777 tmpfs "$disk/dev/shm"
  mount -t tmpfs -o mode=755 tmpfs "$disk/run"
  mount -t tmpfs -o mode=1777 tmpfs "$disk/tmp"
}

# The cable is put in from outside, as machine-init.sh says.
network() {
  ip link set lo up
  for ((tries = 0; tries < 200; tries++)); do
    ip link show eth0 >/dev/null 2>&1 && break
    sleep 0.05
  done
  ip address add "$address/32" dev eth0
  ip link set eth0 up
  ip route add 10.99.0.1 dev eth0
  ip route add default via 10.99.0.1
}

hostname "$name"
root_disk
kernel_file_systems
network
cd "$disk"
pivot_root . .old
cd /
umount -l /.old
# By this word it knows that it is in a container, and leaves alone what is not its own.
exec env -i container=lab PATH=/usr/sbin:/usr/bin /usr/lib/systemd/systemd </dev/null
