// Of net-snmp, which has no types of its own, what is used here: by the programs the client, by their tests the agent.
declare module 'net-snmp' {
  import type { RemoteInfo, Socket } from 'node:dgram'

  export interface Varbind {
    readonly oid: string
    readonly type: number
    readonly value: unknown
  }

  export interface User {
    readonly name: string
    readonly level: number
    readonly authProtocol: string
    readonly authKey: string
    readonly privProtocol: string
    readonly privKey: string
  }

  /** What the library needs of a socket. */
  export interface Datagrams {
    on(event: string, heard: (...told: never[]) => void): unknown
    ref(): unknown
    unref(): unknown
    close(): unknown
    bind(port?: number, address?: string): unknown
    send(bytes: Buffer, offset: number, length: number, port: number, address: string, sent: (error: Error | null, size: number) => void): unknown
  }

  export interface SessionOptions {
    readonly port: number
    readonly version: number
    readonly retries: number
    readonly timeout: number
    readonly reportOidMismatchErrors: boolean
    readonly backwardsGetNexts: boolean
    readonly dgramModule: { createSocket(transport: string): Datagrams }
  }

  export interface Message {
    readonly version: number
    readonly pdu: Pdu
    hasAuthentication(): boolean | number | undefined
    hasPrivacy(): boolean | number | undefined
    setAuthentication(yes: boolean): void
    setPrivacy(yes: boolean): void
  }

  export interface Pdu {
    readonly type: number
    readonly varbinds: Varbind[]
    readonly maxRepetitions: number
    errorStatus: number
    errorIndex: number
    getResponsePduForRequest(): Pdu
  }

  export interface Request {
    responseCb(error: Error): void
  }

  export interface Session {
    get(oids: readonly string[], answered: (error: Error | null, varbinds: readonly Varbind[]) => void): void
    set(varbinds: readonly Varbind[], answered: (error: Error | null, varbinds: readonly Varbind[]) => void): void
    subtree(oid: string, atOnce: number, fed: (varbinds: readonly Varbind[]) => boolean | undefined, done: (error: Error | null) => void): void
    cancelRequests(error: Error): void
    close(): void
    on(event: 'error', heard: (error: Error) => void): void
    onSimpleGetResponse(request: Request, message: Message): void
  }

  export interface Agent {
    getAuthorizer(): { addCommunity(name: string): void; addUser(user: User): void }
    getRequest(socket: Socket, message: Message, from: RemoteInfo): void
    setRequest(socket: Socket, message: Message, from: RemoteInfo): void
    getNextRequest(socket: Socket, message: Message, from: RemoteInfo): void
    getBulkRequest(socket: Socket, message: Message, from: RemoteInfo): void
    sendResponse(socket: Socket, from: RemoteInfo, message: Message, pdu: Pdu): void
    close(): void
  }

  interface NetSnmp {
    createSession(target: string, community: string, options: SessionOptions): Session
    createV3Session(target: string, user: User, options: SessionOptions): Session
    createAgent(options: { readonly port: number; readonly address: string; readonly dgramModule: { createSocket(transport: string): Socket } }, heard: (error: Error | null) => void): Agent
    readonly Version2c: number
    readonly Version3: number
    readonly ObjectType: Readonly<Record<string, number> & Record<number, string>>
    readonly ErrorStatus: Readonly<Record<string, number> & Record<number, string>>
    readonly AuthProtocols: Readonly<Record<string, string>>
    readonly PrivProtocols: Readonly<Record<string, string>>
    readonly SecurityLevel: { readonly authPriv: number }
    readonly ResponseInvalidCode: Readonly<Record<string, number>>
    readonly RequestTimedOutError: new (message: string) => Error
    readonly RequestFailedError: new (message: string) => Error & { readonly status: number }
    readonly ResponseInvalidError: new (message: string) => Error & { readonly code: number }
  }

  const snmp: NetSnmp
  export default snmp
}
