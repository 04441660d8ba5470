// The controller half: which node has a volume, each a file beside it. Where it is exclusive it is a storage that looks: it gives to
// nobody what another node has or writes, and takes from nobody what he writes. Else it refuses nobody.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Whoever wrote within these seconds writes.
const lately = 1.0

type controller struct {
	driver
	csi.UnimplementedControllerServer
	exclusive bool
	// What is looked at is true until it was acted on.
	turn sync.Mutex
}

func serveController(of driver, endpoint string, exclusive bool) {
	of.who = "controller"
	c := &controller{driver: of, exclusive: exclusive}
	server := grpc.NewServer(grpc.UnaryInterceptor(c.journal))
	csi.RegisterIdentityServer(server, c)
	csi.RegisterControllerServer(server, c)
	log.Fatal(server.Serve(listen(endpoint)))
}

func (c *controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	attach := &csi.ControllerServiceCapability_RPC{Type: csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME}
	capability := &csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{Rpc: attach}}
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: []*csi.ControllerServiceCapability{capability}}, nil
}

func (c *controller) ControllerPublishVolume(_ context.Context, r *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	c.turn.Lock()
	defer c.turn.Unlock()
	if _, err := os.Stat(filepath.Join(c.san, r.VolumeId)); err != nil {
		return nil, status.Error(codes.NotFound, "there is no volume "+r.VolumeId)
	}
	if c.exclusive && !shared(r.VolumeCapability) {
		for _, other := range c.nodesOf(r.VolumeId) {
			if other != r.NodeId {
				return nil, status.Errorf(codes.FailedPrecondition, "%s is published to %s", r.VolumeId, other)
			}
		}
		if pod, other := c.writer(r.VolumeId); other != "" && other != r.NodeId {
			return nil, inUse(r.VolumeId, pod, other)
		}
	}
	if err := os.MkdirAll(c.published(r.VolumeId), 0o755); err != nil {
		return nil, err
	}
	return &csi.ControllerPublishVolumeResponse{}, os.WriteFile(filepath.Join(c.published(r.VolumeId), r.NodeId), nil, 0o644)
}

func (c *controller) ControllerUnpublishVolume(_ context.Context, r *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	c.turn.Lock()
	defer c.turn.Unlock()
	if pod, user := c.writer(r.VolumeId); c.exclusive && user == r.NodeId {
		return nil, inUse(r.VolumeId, pod, user)
	}
	err := os.Remove(filepath.Join(c.published(r.VolumeId), r.NodeId))
	if os.IsNotExist(err) {
		err = nil
	}
	return &csi.ControllerUnpublishVolumeResponse{}, err
}

func (c *controller) published(volume string) string {
	return filepath.Join(c.san, volume+".published")
}

func (c *controller) nodesOf(volume string) []string {
	entries, _ := os.ReadDir(c.published(volume))
	nodes := []string{}
	for _, entry := range entries {
		nodes = append(nodes, entry.Name())
	}
	return nodes
}

// writer is who wrote last, if that was lately: his line in the volume says when, on which node, in which boot and which pod.
func (c *controller) writer(volume string) (pod, node string) {
	text, _ := os.ReadFile(filepath.Join(c.san, volume, "log"))
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	words := strings.Fields(lines[len(lines)-1])
	var at float64
	if len(words) != 4 {
		return "", ""
	}
	if _, err := fmt.Sscan(words[0], &at); err != nil || uptime()-at > lately {
		return "", ""
	}
	return words[3], words[1]
}

func inUse(volume, pod, node string) error {
	return status.Errorf(codes.FailedPrecondition, "%s is in use by %s on %s", volume, pod, node)
}

func shared(capability *csi.VolumeCapability) bool {
	switch capability.GetAccessMode().GetMode() {
	case csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER, csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER, csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:
		return true
	}
	return false
}
