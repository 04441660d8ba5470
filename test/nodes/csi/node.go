// The node half: volumes staged and published by bind mounts. It refuses nothing: whoever asks gets the volume, so that what keeps
// two nodes from writing one volume is the product and not the storage.
package main

import (
	"context"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type node struct {
	driver
	csi.UnimplementedNodeServer
	registration.UnimplementedRegistrationServer
	endpoint string
}

func serveNode(of driver, name, root string) {
	of.who = name
	n := &node{driver: of, endpoint: filepath.Join(root, "plugins", of.name, "csi.sock")}
	volumes := grpc.NewServer(grpc.UnaryInterceptor(n.journal))
	csi.RegisterIdentityServer(volumes, n)
	csi.RegisterNodeServer(volumes, n)
	go func() { log.Fatal(volumes.Serve(listen(n.endpoint))) }()
	kubelet := grpc.NewServer()
	registration.RegisterRegistrationServer(kubelet, n)
	log.Fatal(kubelet.Serve(listen(filepath.Join(root, "plugins_registry", of.name+"-reg.sock"))))
}

func (n *node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.who}, nil
}

func (n *node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	stage := &csi.NodeServiceCapability_RPC{Type: csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME}
	capability := &csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{Rpc: stage}}
	return &csi.NodeGetCapabilitiesResponse{Capabilities: []*csi.NodeServiceCapability{capability}}, nil
}

func (n *node) NodeStageVolume(_ context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	return &csi.NodeStageVolumeResponse{}, bind(filepath.Join(n.san, r.VolumeId), r.StagingTargetPath)
}

func (n *node) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if !mounted(r.StagingTargetPath) {
		return nil, status.Error(codes.FailedPrecondition, "not staged")
	}
	return &csi.NodePublishVolumeResponse{}, bind(r.StagingTargetPath, r.TargetPath)
}

func (n *node) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	err := release(r.TargetPath)
	if err == nil {
		os.Remove(r.TargetPath)
	}
	return &csi.NodeUnpublishVolumeResponse{}, err
}

func (n *node) NodeUnstageVolume(_ context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	return &csi.NodeUnstageVolumeResponse{}, release(r.StagingTargetPath)
}

func (n *node) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: n.name, Endpoint: n.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

func (n *node) NotifyRegistrationStatus(_ context.Context, r *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	log.Printf("registered with kubelet: %v %s", r.PluginRegistered, r.Error)
	return &registration.RegistrationStatusResponse{}, nil
}

func bind(from, to string) error {
	if mounted(to) {
		return nil
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	return unix.Mount(from, to, "", unix.MS_BIND, "")
}

func release(path string) error {
	for mounted(path) {
		if err := unix.Unmount(path, 0); err != nil {
			return err
		}
	}
	return nil
}

func mounted(path string) bool {
	table, _ := os.ReadFile("/proc/self/mountinfo")
	return strings.Contains(string(table), " "+path+" ")
}
