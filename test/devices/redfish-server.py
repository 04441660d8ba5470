# redfish-server.py CONFIGURATION SOCKET: OpenStack's sushy-tools, an independent Redfish service, whose systems are machines of
# the test. Its own HTTP side is left as it is; what a system's power is, and an order, is asked and told over the socket.
import socket
import sys

from sushy_tools import error
from sushy_tools.emulator import main
from sushy_tools.emulator.resources.systems import fakedriver

configuration, path = sys.argv[1:3]


def asked(line):
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect(path)
        wire.sendall(line.encode() + b'\n')
        wire.shutdown(socket.SHUT_WR)
        answer = wire.makefile().read().strip()
    if answer.startswith('forbidden'):
        raise error.FishyError(answer, 403)
    if answer.startswith('fault') or answer == '':
        raise error.FishyError(answer or 'no answer', 500)
    return answer


class Machines(fakedriver.FakeDriver):
    def get_power_state(self, identity):
        return asked('get ' + self._get(identity)['name'])

    def set_power_state(self, identity, state):
        asked('set ' + self._get(identity)['name'] + ' ' + state)


fakedriver.FakeDriver = Machines
sys.argv = ['sushy-emulator', '--config', configuration]
sys.exit(main.main())
