// Of ssh2, which has no types of its own, what is used here: by the programs the client, by their tests the server.
declare module 'ssh2' {
  import type { Duplex, Readable } from 'node:stream'

  export interface ClientOptions {
    readonly host: string
    readonly port: number
    readonly username: string
    readonly password?: string
    readonly privateKey?: string
    readonly passphrase?: string
    readonly tryKeyboard: boolean
    readonly readyTimeout: number
    /** Given the server's key as it came over the wire. */
    hostVerifier(key: Buffer): boolean
  }

  export interface ClientError extends Error {
    readonly level?: string
  }

  export interface ClientChannel extends Duplex {
    readonly stderr: Readable
    close(): void
  }

  export class Client {
    connect(options: ClientOptions): void
    exec(command: string, opened: (error: Error | undefined, channel: ClientChannel) => void): void
    on(event: 'error', heard: (error: ClientError) => void): this
    on(event: 'ready' | 'close', heard: () => void): this
    on(event: 'keyboard-interactive', heard: (name: string, says: string, language: string, prompts: readonly { readonly prompt: string; readonly echo?: boolean }[], answer: (words: readonly string[]) => void) => void): this
    setNoDelay(yes: boolean): this
    destroy(): void
  }

  export interface Login {
    readonly method: string
    readonly username: string
    readonly password?: string
    accept(): void
    reject(methods?: readonly string[]): void
    prompt(questions: readonly { readonly prompt: string; readonly echo: boolean }[], answered: (words: readonly string[]) => void): void
  }

  export interface ServerChannel extends Duplex {
    exit(code: number): void
  }

  export interface ServerSession {
    on(event: 'exec', heard: (accept: () => ServerChannel, reject: () => void, asked: { readonly command: string }) => void): this
  }

  export interface ServerConnection {
    on(event: 'authentication', heard: (login: Login) => void): this
    on(event: 'session', heard: (accept: () => ServerSession) => void): this
    on(event: 'ready' | 'close', heard: () => void): this
    on(event: 'error', heard: (error: Error) => void): this
    setNoDelay(yes: boolean): this
    end(): void
  }

  export class Server {
    constructor(options: { readonly hostKeys: readonly string[] }, heard: (connection: ServerConnection) => void)
    listen(port: number, address: string, ready: () => void): this
    address(): { readonly port: number }
    close(closed: () => void): this
  }

  interface Ssh2 {
    readonly Client: typeof Client
    readonly Server: typeof Server
    readonly utils: {
      parseKey(key: string): { getPublicSSH(): Buffer }
    }
  }

  const ssh2: Ssh2
  export default ssh2
}
