// What `core/` has of its surroundings beside the language itself: text from bytes and bytes from text, which asks nobody anything.
declare class TextEncoder {
  encode(text: string): Uint8Array<ArrayBuffer>
  encodeInto(text: string, into: Uint8Array): { readonly read: number; readonly written: number }
}
declare class TextDecoder {
  constructor(encoding?: 'utf-8', options?: { readonly fatal?: boolean; readonly ignoreBOM?: boolean })
  decode(bytes: Uint8Array): string
}
