#!/usr/bin/env bash
# Builds what a real node runs (kubelet, containerd of two generations with shim and ctr, runc, CNI plugins, busybox, systemd) and the lab's own CSI
# driver, from the Go module proxy and Debian packages, so that a machine with Go but no container engine, no registry and
# no release downloads can still be several nodes.
#
#   build.sh [VERSION]      of Kubernetes; defaults to $HOLDFAST_KUBERNETES, then to 1.36.4
#
# Prints the directory of the binaries as its last line. Exit codes: 0 built or already there, 2 bad argument, 3 Go is missing,
# 4 a tool of Debian is missing, anything else is a builder's own failure.
set -euo pipefail

version="${1:-${HOLDFAST_KUBERNETES:-1.36.4}}"
version="v${version#v}"
if ! [[ "$version" =~ ^v1\.([0-9]+)\.([0-9]+)$ ]]; then
  echo "build.sh: '${version#v}' is not a Kubernetes version such as 1.36.4" >&2
  exit 2
fi
minor="${BASH_REMATCH[1]}"
staging="v0.$minor.${BASH_REMATCH[2]}"

containerd_version=v2.3.7
# The oldest that kubelet 1.36 takes, and no newer kubelet does: its NRI asks in the older way.
older_containerd_version=v1.7.35
runc_version=v1.5.2
cni_version=v1.9.1
csi_version=v1.11.0
plugins=(main/ptp main/loopback ipam/host-local)

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="${HOLDFAST_CACHE:-$HOME/.cache/holdfast}/nodes"
bin="$root/$version"
work="$root/.building-$version"

main() {
  if complete; then echo "$bin"; return; fi
  require_tools
  mkdir -p "$bin/cni" "$bin/containerd-1.7"
  # Two runs would fill the same work folder: the second waits, then finds everything done.
  exec 9>"$root/.lock-$version"
  flock 9
  rm -rf "$work"
  mkdir -p "$work/out" "$work/debian"
  there busybox || build_busybox
  there cni || build_cni
  there runc || build_runc
  there containerd || build_containerd github.com/containerd/containerd/v2 "$containerd_version"
  there containerd-1.7 || build_containerd github.com/containerd/containerd "$older_containerd_version" containerd-1.7/
  there kubelet || build_kubelet
  there csi-driver || build_csi
  there systemd || build_systemd
  rm -rf "$work"
  complete || { echo "build.sh: built, but something in $bin does not answer with its version" >&2; exit 1; }
  echo "$bin"
}

complete() {
  local program
  for program in busybox cni runc containerd containerd-1.7 kubelet csi-driver systemd; do there "$program" || return 1; done
}

# Being there is not enough: a binary from a full disk, of another version or another machine is there too.
there() {
  case "$1" in
    busybox) "$bin/busybox" true 2>/dev/null ;;
    cni) says "$cni_version" "$bin/cni/ptp" --version && says "$cni_version" "$bin/cni/loopback" --version && says "$cni_version" "$bin/cni/host-local" --version ;;
    runc) says "${runc_version#v}" "$bin/runc" --version && says libseccomp "$bin/runc" --version ;;
    containerd) is_containerd "$containerd_version" "$bin" ;;
    containerd-1.7) is_containerd "$older_containerd_version" "$bin/containerd-1.7" ;;
    kubelet) says "$version" "$bin/kubelet" --version ;;
    csi-driver) says "$(csi_source)" "$bin/csi-driver" version ;;
    systemd) [[ "$(cat "$bin/systemd/of" 2>/dev/null)" == "$(systemd_source)" ]] ;;
  esac
}

says() {
  local wanted=$1 said
  shift
  [[ -x "$1" ]] && said=$("$@" 2>&1) && [[ "$said" == *"$wanted"* ]]
}

is_containerd() {
  says "$1" "$2/containerd" --version && says "$1" "$2/ctr" --version && says "$1" "$2/containerd-shim-runc-v2" -v
}

require_tools() {
  local tool
  command -v go >/dev/null || { echo "build.sh: Go is not on the PATH; install Go 1.26 or newer to build the nodes" >&2; exit 3; }
  for tool in apt-get dpkg-deb gcc pkg-config; do
    command -v "$tool" >/dev/null && continue
    echo "build.sh: $tool is not on the PATH; runc is linked with C, and its library comes as a Debian package" >&2
    exit 4
  done
}

# A go.work or a vendoring habit of the surroundings must not reach the wrapper modules.
# Niced, because it takes all cores for minutes and others work on this machine too.
golang() { GOWORK=off GOFLAGS=-mod=mod CGO_ENABLED="${cgo:-0}" nice -n 10 go "$@" 9>&-; }

# Each is a module that only requires what is built: `go install path@version` is refused where a go.mod has replacements.
wrapper() {
  mkdir -p "$work/$1"
  cd "$work/$1"
  golang mod init "local/$1"
}

# Unpacked, not installed: nothing of the machine changes.
debian() {
  cd "$work/debian"
  apt-get download "$1" || { apt-get update && apt-get download "$1"; }
  dpkg-deb -x "$1"_*.deb "$work/debian/root"
}

build_busybox() {
  debian busybox-static
  publish "$work/debian/root/bin/busybox" busybox
}

build_cni() {
  local plugin
  wrapper cni
  golang get "${plugins[@]/#/github.com/containernetworking/plugins/plugins/}" "github.com/containernetworking/plugins@$cni_version"
  for plugin in "${plugins[@]}"; do
    golang build -trimpath -ldflags "-s -w -X github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion=$cni_version" \
      -o "$work/out/$(basename "$plugin")" "github.com/containernetworking/plugins/plugins/$plugin"
    publish "$work/out/$(basename "$plugin")" "cni/$(basename "$plugin")"
  done
}

# With seccomp, or every pod that asks for RuntimeDefault is refused; linked statically, so that the machine needs no library.
build_runc() {
  debian libseccomp-dev
  wrapper runc
  cgo=1 golang get "github.com/opencontainers/runc@$runc_version"
  local described
  described=$(dirname "$(find "$work/debian/root" -name libseccomp.pc)")
  # Go keeps the flags of a compiled package, and does not ask again where its library lies: another work folder than before is told to the linker.
  PKG_CONFIG_PATH="$described" PKG_CONFIG_SYSROOT_DIR="$work/debian/root" \
    cgo=1 golang build -trimpath -tags "seccomp netgo osusergo" -ldflags "-s -w -linkmode external -extldflags '-static -L$(dirname "$described")' -X main.version=${runc_version#v}" \
    -o "$work/out/runc" github.com/opencontainers/runc
  publish "$work/out/runc" runc
}

# MODULE VERSION [FOLDER/]: where it is to lie, unless with the others.
build_containerd() {
  local program module=$1 of=$2
  wrapper "containerd-$of"
  golang get "$module/cmd/containerd@$of" "$module/cmd/containerd-shim-runc-v2@$of" "$module/cmd/ctr@$of"
  for program in containerd containerd-shim-runc-v2 ctr; do
    golang build -trimpath -tags "no_btrfs no_devmapper no_zfs no_aufs netgo osusergo static_build" \
      -ldflags "-s -w -X $module/version.Version=$of" -o "$work/out/$program" "$module/cmd/$program"
    publish "$work/out/$program" "${3:-}$program"
  done
}

# As test/control-plane/build.sh builds its four: Kubernetes requires its own libraries at v0.0.0 and replaces them with folders
# that a module does not carry, and only the main module's go and godebug lines count.
build_kubelet() {
  local answer upstream module setting
  wrapper kubelet
  answer=$(golang mod download -json "k8s.io/kubernetes@$version") || { echo "build.sh: $answer" >&2; exit 1; }
  upstream=$(sed -n 's/^.*"GoMod": "\(.*\)".*$/\1/p' <<<"$answer")
  for module in $(awk '/=> \.\/staging/ {print $1}' "$upstream"); do
    golang mod edit "-replace=$module=$module@$staging"
  done
  golang mod edit "-go=$(awk '$1 == "go" {print $2}' "$upstream")" "-require=k8s.io/kubernetes@$version"
  for setting in $(awk '$1 == "godebug" && $2 != "(" {print $2} $1 == "godebug" && $2 == "(" {inside = 1; next}
      inside && $1 == ")" {inside = 0} inside {print $1}' "$upstream"); do
    golang mod edit "-godebug=$setting"
  done
  golang get "k8s.io/kubernetes/cmd/kubelet@$version"
  golang build -trimpath -ldflags "-s -w $(version_flags)" -o "$work/out/kubelet" k8s.io/kubernetes/cmd/kubelet
  publish "$work/out/kubelet" kubelet
}

version_flags() {
  local package
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    printf -- '-X %s.gitVersion=%s -X %s.gitMajor=1 -X %s.gitMinor=%s ' "$package" "$version" "$package" "$package" "$minor"
  done
}

# Its source is its version, so that a change of it is a new build.
csi_source() { cat "$here"/csi/*.go | sha256sum | cut -c1-16; }

build_csi() {
  wrapper csi
  cp "$here"/csi/*.go .
  golang get "github.com/container-storage-interface/spec@$csi_version" "k8s.io/kubelet@$staging"
  golang mod tidy
  golang build -trimpath -ldflags "-s -w -X main.source=$(csi_source)" -o "$work/out/csi-driver" .
  publish "$work/out/csi-driver" csi-driver
}

# How it is built is its version.
systemd_source() { declare -f build_systemd systemd_packages | sha256sum | cut -c1-16; }

# What becomes /usr of a machine: systemd with its bus, all that they are linked with, and a shell. No program of packages that only install packages.
build_systemd() {
  local folder package
  mkdir -p "$work/systemd/packages" "$work/systemd/root/usr"
  for folder in bin sbin lib lib64; do
    mkdir "$work/systemd/root/usr/$folder"
    ln -s "usr/$folder" "$work/systemd/root/$folder"
  done
  cd "$work/systemd/packages"
  # shellcheck disable=SC2046 # one word a package
  apt-get download $(systemd_packages) || { apt-get update && apt-get download $(systemd_packages); }
  for package in *.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$work/systemd/root"
  done
  cd "$work/systemd/root/usr"
  rm -rf share/doc share/man share/locale share/info share/perl5
  cp "$bin/busybox" bin/busybox
  for folder in sh env cat sleep; do ln -sf busybox "bin/$folder"; done
  chroot "$work/systemd/root" /usr/bin/systemctl --version >&2
  systemd_source > of
  rm -rf "$bin/systemd"
  mv "$work/systemd/root/usr" "$bin/systemd"
}

# As if nothing were installed here: what is on this machine already is needed there too.
systemd_packages() {
  apt-get -o Dir::State::status=/dev/null --no-install-recommends --print-uris --yes install systemd-sysv dbus | sed -n "s/^'.*' \([^_]*\)_.*$/\1/p" | grep -v perl
}

# A rename is whole or not at all, so nobody ever runs half a binary.
publish() {
  chmod 755 "$1"
  mv -f "$1" "$bin/$2.new"
  mv -f "$bin/$2.new" "$bin/$2"
}

main
