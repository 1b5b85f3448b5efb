import ipaddr from 'ipaddr.js';
import { EMAIL_PROVIDERS, type EmailProviderName } from './email/email.ts';
import { parseRanges } from '../lib/ip-ranges.ts';
import { SECRET_KEY_LENGTH } from '../lib/secret-key.ts';

/** Parsers of settings: environment text to values. Each throws for invalid text. */

const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

const LONGEST_DURATION = 30 * 24 * 3_600_000;

/** `500ms`, `5s`, `10m`, `24h` → milliseconds; positive, and at most 30 days. */
export function parseDuration(text: string): number {
  const match = /^(\d+)(ms|s|m|h)$/.exec(text);
  if (!match) throw new Error('not a duration');
  const milliseconds = Number(match[1]) * (UNITS[match[2] as string] as number);
  if (milliseconds === 0 || milliseconds > LONGEST_DURATION) throw new Error('out of range');
  return milliseconds;
}

export function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max) throw new Error('out of range');
    return value;
  };
}

export function oneOf<const T extends string>(...values: T[]): (text: string) => T {
  return (text) => {
    const found = values.find((value) => value === text);
    if (found === undefined) throw new Error('unknown value');
    return found;
  };
}

export function url(...protocols: string[]): (text: string) => string {
  return (text) => {
    if (!protocols.includes(new URL(text).protocol)) throw new Error('wrong protocol');
    return text.replace(/\/+$/, '');
  };
}

export function providers(text: string): EmailProviderName[] {
  const names = text.split(',').map((name) => oneOf(...EMAIL_PROVIDERS)(name.trim()));
  if (new Set(names).size !== names.length) throw new Error('named twice');
  return names;
}

export const text = (value: string): string => value;

export function fileStore(text: string): string {
  if (!/^(?:file:.|s3:\/\/[^/?#])/.test(text)) throw new Error('neither a folder nor a bucket');
  return text;
}

export function ranges(text: string): string[] {
  const given = text.split(',').flatMap((range) => range.trim() || []);
  parseRanges(given);
  return given;
}

export function accountSid(text: string): string {
  if (!/^AC[0-9a-f]{32}$/i.test(text)) throw new Error('no SID of an account');
  return text;
}

export function apiKey(text: string): string {
  if (!/^sw_live_\S+$/.test(text)) throw new Error('no API key');
  return text;
}

export function secretKey(text: string): string {
  if (text.length < SECRET_KEY_LENGTH) throw new Error('too short');
  return text;
}

export function secretKeys(text: string): string[] {
  const isLines = text.includes('\n');
  const keys = text.split(isLines ? '\n' : ',').map((key) => key.trim());
  return keys.filter((key) => !isLines || key !== '').map(secretKey);
}

/** Addresses with or without a port: `10.0.0.53`, `10.0.0.53:5353`, `fd00::53`, `[fd00::53]:5353`. */
export function servers(text: string): string[] {
  const given = text.split(',').flatMap((server) => server.trim() || []);
  if (given.length === 0) throw new Error('none');
  for (const server of given) {
    const [, v6, v4, port] = /^(?:\[(.+)\]|([\d.]+))(?::(\d+))?$/.exec(server) ?? [];
    const address = v6 ?? v4 ?? server;
    const isAddress = ipaddr.IPv4.isValidFourPartDecimal(address) || ipaddr.IPv6.isValid(address);
    if (!isAddress) throw new Error('no address');
    if (port !== undefined) integer(1, 65_535)(port);
  }
  return given;
}
