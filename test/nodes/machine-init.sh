#!/usr/bin/env bash
# Process 1 of a machine of the lab, already in namespaces of its own (mount, pid, net, uts, ipc, cgroup). It makes of a folder a
# machine: root disk, kernel file systems, a boot id, a network cable; then it keeps containerd and kubelet running.
#
#   machine-init.sh NAME ADDRESS BOOT_ID DISK BINARIES IMAGES STORAGE
#
# The kernel is shared with everything else on this computer, so whatever a kubelet would write to it is shadowed first.
set -euo pipefail
name=$1 address=$2 boot_id=$3 disk=$4 binaries=$5 images=$6 storage=$7
old=/.old

root_disk() {
  mount --bind "$disk" "$disk"
  mount --bind /usr "$disk/usr"
  mount -o remount,bind,ro "$disk/usr"
  mount --bind "$binaries" "$disk/opt/lab"
  mount --bind "$images" "$disk/opt/images"
  mount --bind "$storage" "$disk/san"
}

kernel_file_systems() {
  local controller
  mount -t proc proc "$disk/proc"
  mount -t sysfs sysfs "$disk/sys"
  mount -t tmpfs -o mode=755 tmpfs "$disk/sys/fs/cgroup"
  # Mounted anew inside the cgroup namespace, so that the machine sees its own groups as the root.
  for controller in cpu cpuacct cpuset memory devices freezer blkio pids; do
    mkdir "$disk/sys/fs/cgroup/$controller"
    mount -t cgroup -o "$controller" cgroup "$disk/sys/fs/cgroup/$controller"
  done
  mkdir "$disk/sys/fs/cgroup/systemd"
  mount -t cgroup -o none,name=systemd cgroup "$disk/sys/fs/cgroup/systemd"
  mount --bind /dev "$disk/dev"
  mount -t devpts -o newinstance,ptmxmode=666 devpts "$disk/dev/pts"
  mount -t tmpfs tmpfs "$disk/dev/shm"
  # Gone with the power, as on any machine.
  mount -t tmpfs -o mode=755 tmpfs "$disk/run"
  mount -t tmpfs -o mode=1777 tmpfs "$disk/tmp"
}

# A file of ours in the place of one of the kernel's: VALUE is what is read there, and what is written stays in this machine.
shadow() {
  local value=$1 file=$2 copy
  [ -e "$file" ] || return 0
  copy="/run/kernel/$(tr / _ <<<"$file")"
  echo "$value" > "$copy"
  mount --bind "$copy" "$file"
}

shadows() {
  mkdir -p /run/kernel
  shadow "$boot_id" /proc/sys/kernel/random/boot_id
  # What kubelet insists on, and would write for the whole computer.
  shadow 1 /proc/sys/vm/overcommit_memory
  shadow 0 /proc/sys/vm/panic_on_oom
  shadow 10 /proc/sys/kernel/panic
  shadow 1 /proc/sys/kernel/panic_on_oops
  # A write here would reset this computer and not this machine.
  shadow '' /proc/sysrq-trigger
}

# The cable is put in from outside: it ends in this machine's network and goes with it. There is no neighbour on it but the
# switch's first address, where everything passes (network.ts).
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
  echo 1 > /proc/sys/net/ipv4/ip_forward
}

# As a system's init does with its services: whatever ends is started again a second later, unless it was switched off by hand.
keep() {
  local service=$1
  shift
  while :; do
    while [ -e "/run/$service.off" ]; do sleep 0.2; done
    "$@" >> "/var/log/$service.log" 2>&1 &
    echo $! > "/run/$service.pid"
    wait $! || true
    sleep 1
  done
}

# Before kubelet, which would otherwise ask a registry that is not there.
import_images() {
  local image mark
  until ctr version >/dev/null 2>&1; do sleep 0.05; done
  for image in /opt/images/*.tar; do
    mark="/var/lib/containerd/imported-$(basename "$image")"
    [ "$mark" -nt "$image" ] && continue
    ctr -n k8s.io images import "$image"
    touch "$mark"
  done
}

hostname "$name"
root_disk
kernel_file_systems
cd "$disk"
pivot_root . .old
exec </dev/null
export PATH=/opt/runtime:/opt/lab:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
shadows
network
umount -l "$old"
# As on a systemd machine: a volume that a pod's plugin mounts must reach the host.
mount --make-rshared /
ulimit -n "$(ulimit -Hn)"

# What an administrator wants done at each boot, before anything of Kubernetes runs.
if [ -e /etc/rc.local ]; then bash /etc/rc.local >> /var/log/rc.local.log 2>&1 || true; fi

keep containerd containerd --config /etc/containerd/config.toml &
{
  import_images >> /var/log/images.log 2>&1
  keep kubelet kubelet --config /etc/kubernetes/kubelet.yaml --kubeconfig /etc/kubernetes/kubeconfig --hostname-override "$name" \
    --node-ip "$address" --root-dir /var/lib/kubelet
} &
# Whatever loses its parent becomes ours to bury.
while :; do wait -n 2>/dev/null || sleep 1; done
