#!/usr/bin/env bash
# Installs what the tier of real devices needs on Debian 12 (amd64, root): packages by apt, and outside the work tree two
# kernels with the smallest system that can beat, the independent servers by pip, and Network UPS Tools.
#
#   install.sh [all]      all: what the long tests need too
#
# Prints the cache's directory as its last line. Exit codes: 0 all is there, 3 this machine cannot, anything else is apt's or
# pip's own failure. Each says why on stderr, the last line what matters most.
set -euo pipefail

here="$(cd "$(dirname "$0")" && pwd)"
root="${HOLDFAST_CACHE:-$HOME/.cache/holdfast}/devices"

packages=(
  fence-agents telnet     # the independent clients
  ipmitool openipmi       # our ipmi's tool; a management controller (ipmi_sim)
  snmp snmpd              # strips and switches
  qemu-system-x86 busybox-static cpio   # the machine behind them
  socat util-linux iproute2 iputils-ping kmod openssl python3-venv
)
# For disks that several machines share: qemu as an initiator of iSCSI, and the tool that reserves them.
reservation_packages=(qemu-block-extra sg3-utils)
# Without the packages that would have it run by itself.
libvirt_packages=(libvirt-daemon libvirt-clients)
# Unpacked and not installed: as a package it would upgrade the machine's systemd and udev.
nut_packages=(nut-server nut-client libupsclient6 libnutscan2 libltdl7 libusb-1.0-0)
redfish_packages=(sushy-tools==2.2.0)
openstack_packages=(python-novaclient==18.13.0 keystoneauth1)
ec2_packages=('moto[ec2]==5.2.5' flask flask-cors)
# The newest of azure-mgmt-compute has other signatures than Debian's fence_azure_arm calls.
gce_packages=(google-api-python-client google-auth google-auth-httplib2 pysocks pyopenssl)
azure_packages=(azure-mgmt-compute==29.1.0 azure-identity)
vsphere_packages=(ansible-core==2.16.14 aiohttp)
# For one of its collections.
ansible=ansible==9.13.0

main() {
  able
  mkdir -p "$root"
  # Two runs would fill the same folders: the second waits, then finds everything done.
  exec 9>"$root/.lock"
  flock 9
  [ "${1:-}" != all ] || packages+=("${reservation_packages[@]}" "${libvirt_packages[@]}")
  install_packages
  part kernel "$(kernel_package kernel cloud-amd64)" build_kernel
  part watchdog "$(kernel_package watchdog amd64)" build_watchdog
  part initrd "$(cat "$here/guest/init" "$0" | sha256sum | cut -d' ' -f1)" build_initrd
  part runtime "$(version_of containerd)" unpack_runtime
  part nut "${nut_packages[*]}" unpack_nut
  part redfish "${redfish_packages[*]}" make_venv "${redfish_packages[@]}"
  part openstack "${openstack_packages[*]}" make_venv "${openstack_packages[@]}"
  if [ "${1:-}" = all ]; then
    part reservation "$(kernel_package reservation amd64)" build_reservation
    part ec2 "${ec2_packages[*]}" make_venv "${ec2_packages[@]}"
    part gce "${gce_packages[*]}" make_venv "${gce_packages[@]}"
    part azure "${azure_packages[*]}" make_venv "${azure_packages[@]}"
    part vsphere "${vsphere_packages[*]} $ansible" make_vsphere
  fi
  echo "$root"
}

able() {
  [ "$(id -u)" -eq 0 ] || no 'root is needed, for network namespaces and packages'
  [ "$(uname -sm)" = 'Linux x86_64' ] || no 'the machine behind the devices is an amd64 one'
  command -v apt-get >/dev/null || no 'the packages are those of Debian 12'
  grep -q '^VERSION_ID="12"' /etc/os-release || no 'the packages are those of Debian 12'
  unshare --net true 2>/dev/null || no 'no network namespace can be made'
}

no() { echo "install.sh: $1" >&2; exit 3; }

install_packages() {
  local missing=() package
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ "${#missing[@]}" -gt 0 ] || return 0
  # Not one of the servers among them may begin by itself.
  local policy=/usr/sbin/policy-rc.d ours=''
  if [ ! -e "$policy" ]; then printf '#!/bin/sh\nexit 101\n' > "$policy"; chmod 755 "$policy"; ours=1; fi
  quietly apt-get update
  DEBIAN_FRONTEND=noninteractive quietly apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}" || { [ -z "$ours" ] || rm -f "$policy"; return 1; }
  [ -z "$ours" ] || rm -f "$policy"
}

# A part is there when it says what it was made of: half of one, from a full disk or an older script, is made anew.
part() {
  local name=$1 of=$2 log
  shift 2
  [ "$(cat "$root/$name/.of" 2>/dev/null)" != "$of" ] || return 0
  rm -rf "${root:?}/$name"
  mkdir -p "$root/$name"
  (cd "$root/$name" && "$@")
  echo "$of" > "$root/$name/.of"
}

# The name holds the version; where apt's lists are gone, what was built last will do.
kernel_package() {
  apt-cache depends "linux-image-$2" 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-6[^ ]*\)$/\1/p' | head -n 1 | grep . || cat "$root/$1/.of" 2>/dev/null || echo none
}

# Where apt's lists are gone, what was unpacked last will do.
version_of() {
  apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: \([0-9].*\)$/\1/p' | grep . || cat "$root/runtime/.of" 2>/dev/null || echo none
}

# Not installed: it would begin to run here.
unpack_runtime() {
  quietly fetch containerd
  dpkg-deb --fsys-tarfile ./*.deb | tar -x ./usr/bin/containerd
  mv usr/bin/containerd containerd
  rm -rf usr ./*.deb
}

# The other kernel has no driver for a watchdog that is hardware.
build_watchdog() {
  quietly fetch "$(kernel_package watchdog amd64)"
  dpkg-deb --fsys-tarfile ./*.deb | tar -x --wildcards './boot/vmlinuz-*' '*/drivers/watchdog/watchdog.ko' '*/drivers/watchdog/i6300esb.ko' '*/e1000/e1000.ko'
  mv boot/vmlinuz-* vmlinuz
  mkdir modules
  find lib -name '*.ko' -exec mv {} modules/ ';'
  rm -rf boot lib ./*.deb
}

# Beside the kernel of the watchdog: an initiator's drivers and a target's, named in the order in which they are to be loaded. The target asks for
# crc32c by that name alone, at each login: nothing tells that it depends on it.
build_reservation() {
  local package version module file number=0
  package=$(kernel_package reservation amd64)
  version=${package#linux-image-}
  quietly fetch "$package"
  dpkg-deb --fsys-tarfile ./*.deb | tar -x --wildcards './boot/vmlinuz-*' "./lib/modules/$version/*"
  mv boot/vmlinuz-* vmlinuz
  depmod -b . "$version"
  mkdir modules
  for module in virtio_pci virtio_scsi sd_mod sg e1000 target_core_mod target_core_file crc32c_generic iscsi_target_mod; do
    modprobe -S "$version" -d . --show-depends "$module"
  done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r file; do
    number=$((number + 1))
    cp "$file" "modules/$(printf '%02d' "$number")-${file##*/}"
  done
  rm -rf boot lib ./*.deb
}

build_kernel() {
  quietly fetch "$(kernel_package kernel cloud-amd64)"
  dpkg-deb --fsys-tarfile ./*.deb | tar -x --wildcards './boot/vmlinuz-*'
  mv boot/vmlinuz-* vmlinuz
  rm -rf boot ./*.deb
}

build_initrd() {
  local tree=tree applet
  mkdir -p "$tree"/{bin,proc,sys,dev,tmp}
  cp /bin/busybox "$tree/bin/busybox"
  # Not busybox itself: a link to itself cannot be followed, and the machine would find no program at all.
  for applet in $(/bin/busybox --list | grep -vx busybox); do ln -sf busybox "$tree/bin/$applet"; done
  install -m 755 "$here/guest/init" "$tree/init"
  (cd "$tree" && find . | cpio -o -H newc --quiet | gzip -1) > initrd.gz
  rm -rf "$tree"
}

unpack_nut() {
  local package
  quietly fetch "${nut_packages[@]}"
  for package in ./*.deb; do dpkg-deb -x "$package" .; done
  rm -f ./*.deb
}

# Debian's own Python, whatever else is called python3 here.
make_venv() {
  /usr/bin/python3 -m venv .
  quietly bin/pip install --disable-pip-version-check "$@"
}

# One collection, and of another the one file that it needs: with the rest, each question would leave a server behind that answers the next.
make_vsphere() {
  make_venv "${vsphere_packages[@]}"
  quietly bin/pip download --disable-pip-version-check --no-deps --dest . "$ansible"
  bin/python - <<'END'
import glob, zipfile
[wheel] = glob.glob('ansible-*.whl')
[packages] = glob.glob('lib/python3*/site-packages')
wanted = ('ansible_collections/vmware/vmware_rest/', 'ansible_collections/cloud/common/plugins/module_utils/turbo/exceptions.py')
with zipfile.ZipFile(wheel) as packed:
    packed.extractall(packages, [name for name in packed.namelist() if name.startswith(wanted)])
END
  rm ansible-*.whl
}

# apt's sandbox user may not write here, and the lists of a fresh machine are empty.
fetch() { apt-get -o APT::Sandbox::User=root download "$@" || { apt-get update && apt-get -o APT::Sandbox::User=root download "$@"; }; }

# What they say matters only when they fail.
quietly() {
  local log
  log=$(mktemp)
  if "$@" > "$log" 2>&1 9>&-; then rm -f "$log"; return 0; fi
  tail -n 20 "$log" >&2
  rm -f "$log"
  return 1
}

main "$@"
