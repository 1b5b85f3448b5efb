import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type Keyword, keywordOf } from '../../src/domain/sms/keywords.ts';

const TEXTS: Readonly<Record<string, Keyword | undefined>> = {
  STOP: 'stop',
  STOPALL: 'stop',
  UNSUBSCRIBE: 'stop',
  CANCEL: 'stop',
  END: 'stop',
  QUIT: 'stop',
  START: 'start',
  YES: 'start',
  UNSTOP: 'start',
  HELP: 'help',
  stop: 'stop',
  '  Stop \r\n': 'stop',
  'yes\n': 'start',
  REVOKE: 'stop',
  OPTOUT: 'stop',
  OptOut: 'stop',
  'opt out': 'stop',
  'Opt  out.': 'stop',
  'OPT-OUT': 'stop',
  'Revoke.': 'stop',
  'STOP.': 'stop',
  'STOP!': 'stop',
  '“STOP”': 'stop',
  'Start.': 'start',
  'Stop it': undefined,
  '.': undefined,
  'opt me out': undefined,
  'revoke my order': undefined,
  'opt in': undefined,
  'UN STOP': undefined,
  ſtop: undefined,
  unsubscrıbe: undefined,
  '': undefined,
};

for (const [text, keyword] of Object.entries(TEXTS)) {
  it(`${JSON.stringify(text)} is ${keyword ?? 'no keyword'}`, () => assert.equal(keywordOf(text), keyword));
}
