// The node plugin of the lab's CSI driver: a volume is a folder of the storage (/san, the same folder on every machine), staged
// and published by bind mounts. It refuses nothing: whoever asks gets the volume, and each call is logged beside it, so that
// what keeps two nodes from writing one volume is the product and not the storage.
//
//	csi-node            serves until it is ended (DRIVER, NODE_NAME, SAN, KUBELET_ROOT)
//	csi-node version    says which source it was built from
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

var source = "unknown"

type plugin struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	registration.UnimplementedRegistrationServer
	driver, node, san, endpoint string
}

func main() {
	if len(os.Args) > 1 {
		fmt.Println(source)
		return
	}
	log.SetFlags(log.LUTC | log.Lmicroseconds)
	root := os.Getenv("KUBELET_ROOT")
	p := &plugin{driver: os.Getenv("DRIVER"), node: os.Getenv("NODE_NAME"), san: os.Getenv("SAN")}
	p.endpoint = filepath.Join(root, "plugins", p.driver, "csi.sock")
	volumes := grpc.NewServer(grpc.UnaryInterceptor(p.journal))
	csi.RegisterIdentityServer(volumes, p)
	csi.RegisterNodeServer(volumes, p)
	go func() { log.Fatal(volumes.Serve(listen(p.endpoint))) }()
	kubelet := grpc.NewServer()
	registration.RegisterRegistrationServer(kubelet, p)
	log.Fatal(kubelet.Serve(listen(filepath.Join(root, "plugins_registry", p.driver+"-reg.sock"))))
}

// listen takes the place of an earlier run, which a power cut leaves behind.
func listen(path string) net.Listener {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		log.Fatal(err)
	}
	os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		log.Fatal(err)
	}
	return listener
}

// journal keeps what was asked, when (the kernel's clock, which all machines share), by which node, and how it ended.
func (p *plugin) journal(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	answer, err := handle(ctx, request)
	volume, ok := request.(interface{ GetVolumeId() string })
	if !ok || volume.GetVolumeId() == "" {
		return answer, err
	}
	var up unix.Timespec
	unix.ClockGettime(unix.CLOCK_BOOTTIME, &up)
	line := fmt.Sprintf("%.2f %s %s %v\n", time.Duration(up.Nano()).Seconds(), p.node, filepath.Base(info.FullMethod), err)
	log.Print(volume.GetVolumeId(), " ", line)
	file, failed := os.OpenFile(filepath.Join(p.san, volume.GetVolumeId()+".journal"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if failed != nil {
		return answer, err
	}
	defer file.Close()
	file.WriteString(line)
	return answer, err
}

func (p *plugin) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: p.driver, VendorVersion: source}, nil
}

func (p *plugin) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

func (p *plugin) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (p *plugin) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: p.node}, nil
}

func (p *plugin) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	stage := &csi.NodeServiceCapability_RPC{Type: csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME}
	capability := &csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{Rpc: stage}}
	return &csi.NodeGetCapabilitiesResponse{Capabilities: []*csi.NodeServiceCapability{capability}}, nil
}

func (p *plugin) NodeStageVolume(_ context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	return &csi.NodeStageVolumeResponse{}, bind(filepath.Join(p.san, r.VolumeId), r.StagingTargetPath)
}

func (p *plugin) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if !mounted(r.StagingTargetPath) {
		return nil, status.Error(codes.FailedPrecondition, "not staged")
	}
	return &csi.NodePublishVolumeResponse{}, bind(r.StagingTargetPath, r.TargetPath)
}

func (p *plugin) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	err := release(r.TargetPath)
	if err == nil {
		os.Remove(r.TargetPath)
	}
	return &csi.NodeUnpublishVolumeResponse{}, err
}

func (p *plugin) NodeUnstageVolume(_ context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	return &csi.NodeUnstageVolumeResponse{}, release(r.StagingTargetPath)
}

func (p *plugin) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: p.driver, Endpoint: p.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

func (p *plugin) NotifyRegistrationStatus(_ context.Context, r *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
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
