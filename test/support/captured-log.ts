import { Writable } from 'node:stream';
import { type Level, type Logger, pino } from 'pino';

/** A log whose lines, each a JSON text, are collected. */
export function captureLog(level: Level): { readonly log: Logger; readonly lines: string[] } {
  const lines: string[] = [];
  const out = new Writable({ write: (line, _, done) => done(void lines.push(String(line))) });
  return { log: pino({ level }, out), lines };
}
