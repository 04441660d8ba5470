#!/usr/bin/env bash
# Builds a real Kubernetes control plane (etcd, kube-apiserver, kube-controller-manager, kube-scheduler,
# kubectl) from the Go module proxy, so that a machine with Go but no cluster, no container runtime and
# no release downloads can still ask the real thing.
#
#   build.sh [VERSION]      VERSION defaults to $HOLDFAST_KUBERNETES, then to 1.36.4
#
# Prints the directory of the binaries as its last line. Exit codes: 0 built or already there,
# 2 bad argument, 3 Go is missing, anything else is Go's own failure.
set -euo pipefail

version="${1:-${HOLDFAST_KUBERNETES:-1.36.4}}"
version="v${version#v}"
if ! [[ "$version" =~ ^v1\.([0-9]+)\.([0-9]+)$ ]]; then
  echo "build.sh: '${version#v}' is not a Kubernetes version such as 1.36.4" >&2
  exit 2
fi
minor="${BASH_REMATCH[1]}"
staging="v0.$minor.${BASH_REMATCH[2]}"

# The server that Kubernetes 1.36.4 names in its go.mod; any 3.6 serves Kubernetes 1.34 to 1.37.
etcd_version="v3.6.8"
commands=(kube-apiserver kube-controller-manager kube-scheduler kubectl)

root="${HOLDFAST_CACHE:-$HOME/.cache/holdfast}/control-plane"
bin="$root/$version"
work="$root/.building-$version"

main() {
  if complete; then echo "$bin"; return; fi
  require_go
  mkdir -p "$bin"
  # Two runs would fill the same work folder: the second waits, then finds everything done.
  exec 9>"$root/.lock-$version"
  flock 9
  if complete; then echo "$bin"; return; fi
  rm -rf "$work"
  mkdir -p "$work/out"
  answers etcd || build_etcd
  build_kubernetes
  rm -rf "$work"
  complete || { echo "build.sh: built, but a binary in $bin does not answer with its version" >&2; exit 1; }
  echo "$bin"
}

complete() {
  local command
  for command in etcd "${commands[@]}"; do answers "$command" || return 1; done
}

# Being there is not enough: a binary from a full disk or another machine is there too.
answers() {
  local said
  [[ -x "$bin/$1" ]] || return 1
  case "$1" in
    etcd) said=$("$bin/etcd" --version 2>/dev/null) && [[ "$said" == *"${etcd_version#v}"* ]] ;;
    kubectl) said=$("$bin/kubectl" version --client 2>/dev/null) && [[ "$said" == *"$version"* ]] ;;
    *) said=$("$bin/$1" --version 2>/dev/null) && [[ "$said" == *"$version"* ]] ;;
  esac
}

require_go() {
  command -v go >/dev/null && return
  echo "build.sh: Go is not on the PATH; install Go 1.26 or newer to build the control plane" >&2
  exit 3
}

# A go.work or a vendoring habit of the surroundings must not reach the wrapper modules.
# Niced, because it takes all cores for minutes and others work on this machine too.
golang() { GOWORK=off CGO_ENABLED=0 nice -n 10 go "$@" 9>&-; }

# `go install go.etcd.io/etcd/server/v3@...` is refused (its go.mod has replace directives),
# a module that requires it is not.
build_etcd() {
  mkdir -p "$work/etcd"
  cd "$work/etcd"
  golang mod init local/etcd
  golang get "go.etcd.io/etcd/server/v3@$etcd_version"
  golang build -mod=mod -trimpath -ldflags "-s -w" -o "$work/out/etcd" go.etcd.io/etcd/server/v3
  publish etcd
}

build_kubernetes() {
  mkdir -p "$work/kubernetes"
  cd "$work/kubernetes"
  golang mod init local/kubernetes
  local answer upstream module setting packages=() command
  # With -json even the reason of a failure goes to stdout.
  answer=$(golang mod download -json "k8s.io/kubernetes@$version") || { echo "build.sh: $answer" >&2; exit 1; }
  upstream=$(sed -n 's/^.*"GoMod": "\(.*\)".*$/\1/p' <<<"$answer")
  # Kubernetes requires its own libraries at v0.0.0 and replaces them with folders that a module does not
  # carry; whoever consumes it has to point them at the published ones.
  for module in $(awk '/=> \.\/staging/ {print $1}' "$upstream"); do
    golang mod edit "-replace=$module=$module@$staging"
  done
  # Only the main module's go and godebug lines count, and Kubernetes is not the main module here.
  golang mod edit "-go=$(awk '$1 == "go" {print $2}' "$upstream")" "-require=k8s.io/kubernetes@$version"
  for setting in $(godebug_settings "$upstream"); do golang mod edit "-godebug=$setting"; done
  for command in "${commands[@]}"; do packages+=("k8s.io/kubernetes/cmd/$command"); done
  golang get "${packages[@]/%/@$version}"
  golang build -mod=mod -trimpath -ldflags "-s -w $(version_flags)" -o "$work/out/" "${packages[@]}"
  for command in "${commands[@]}"; do publish "$command"; done
}

# `godebug default=go1.26`, or the same in a parenthesised block.
godebug_settings() {
  awk '$1 == "godebug" && $2 != "(" {print $2} $1 == "godebug" && $2 == "(" {inside = 1; next}
       inside && $1 == ")" {inside = 0} inside {print $1}' "$1"
}

# Without these the apiserver calls itself v0.0.0-master, and version skew checks read nonsense.
version_flags() {
  local package
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    printf -- '-X %s.gitVersion=%s -X %s.gitMajor=1 -X %s.gitMinor=%s ' \
      "$package" "$version" "$package" "$package" "$minor"
  done
}

# A rename is whole or not at all, so nobody ever runs half a binary.
publish() { mv -f "$work/out/$1" "$bin/$1"; }

main
