// The lab's CSI driver: a volume is a folder of the storage (/san, the same folder on every machine). Each call is logged beside it.
//
//	csi-driver node        serves a kubelet until it is ended (DRIVER, NODE_NAME, SAN, KUBELET_ROOT)
//	csi-driver controller  serves an attacher until it is ended (DRIVER, SAN, ENDPOINT; EXCLUSIVE=1: it refuses, else nobody)
//	csi-driver version     says which source it was built from
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
)

var source = "unknown"

// driver is what both halves are: a name, and the storage that they write of.
type driver struct {
	csi.UnimplementedIdentityServer
	name, san string
	// who asks, in the journal.
	who string
}

func main() {
	log.SetFlags(log.LUTC | log.Lmicroseconds)
	half := ""
	if len(os.Args) > 1 {
		half = os.Args[1]
	}
	of := driver{name: os.Getenv("DRIVER"), san: os.Getenv("SAN")}
	switch half {
	case "node":
		serveNode(of, os.Getenv("NODE_NAME"), os.Getenv("KUBELET_ROOT"))
	case "controller":
		serveController(of, os.Getenv("ENDPOINT"), os.Getenv("EXCLUSIVE") == "1")
	default:
		fmt.Println(source)
	}
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

// uptime is the kernel's, in seconds: all machines share it, and nobody can set it.
func uptime() float64 {
	var up unix.Timespec
	unix.ClockGettime(unix.CLOCK_BOOTTIME, &up)
	return time.Duration(up.Nano()).Seconds()
}

// journal keeps what was asked, when, by whom, and how it ended.
func (d driver) journal(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	answer, err := handle(ctx, request)
	volume, ok := request.(interface{ GetVolumeId() string })
	if !ok || volume.GetVolumeId() == "" {
		return answer, err
	}
	line := fmt.Sprintf("%.2f %s %s %v\n", uptime(), d.who, filepath.Base(info.FullMethod), err)
	log.Print(volume.GetVolumeId(), " ", line)
	file, failed := os.OpenFile(filepath.Join(d.san, volume.GetVolumeId()+".journal"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if failed != nil {
		return answer, err
	}
	defer file.Close()
	file.WriteString(line)
	return answer, err
}

func (d driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.name, VendorVersion: source}, nil
}

func (d driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	controller := &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}
	capability := &csi.PluginCapability{Type: &csi.PluginCapability_Service_{Service: controller}}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{capability}}, nil
}

func (d driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}
