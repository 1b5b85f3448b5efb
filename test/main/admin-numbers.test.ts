import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { chatSeal } from '../../src/accounts/chat-numbers.ts';
import { organization } from '../store/mail.ts';
import { useDatabase } from '../support/database.ts';
import { temporaryFolder } from '../support/folder.ts';
import { SECRET_KEY } from '../support/secret-key.ts';
import { command } from './command-line.ts';

const TOKEN = 'EAAG-token';
const ACCOUNT = `AC${'a1'.repeat(16)}`;
const OWN = ['--account-sid', ACCOUNT, '--token'];

const database = await useDatabase();
const orgId = await organization(database.pool);

describe('number add', () => {
  function add(args: readonly string[], env: Record<string, string> = { DATABASE_URL: database.url, SECRET_KEY }) {
    return command(['number', 'add', ...args], env);
  }

  /** @returns the stored row, and its token opened with this key */
  async function stored(out: string, secretKey = SECRET_KEY) {
    const { id, ...answer } = JSON.parse(out) as { id: string; number: string; provider: string };
    const { rows } = await database.pool.query<{
      org_id: string;
      number: string;
      provider: string;
      phone_number_id: string | null;
      account_sid: string | null;
      credentials: Buffer | null;
    }>('SELECT org_id, number, provider, phone_number_id, account_sid, credentials FROM chat_numbers WHERE id = $1', [
      id,
    ]);
    const { org_id, credentials, phone_number_id, account_sid, ...row } =
      rows[0] ?? assert.fail('there is no such number');
    assert.equal(org_id, orgId);
    assert.deepEqual(answer, row, 'prints id, number and provider only');
    const token = credentials && chatSeal(secretKey).open(credentials, id).toString();
    return { ...row, phone_number_id, account_sid, token };
  }

  it('connects a number of each provider', async () => {
    const twilio = await add(['--organization', orgId, '--number', '+1 202 555 0142', '--provider', 'twilio']);
    assert.equal(twilio.err, '');
    const of = { number: '+12025550142', provider: 'twilio' };
    assert.deepEqual(await stored(twilio.out), { ...of, phone_number_id: null, account_sid: null, token: null });
    const options = ['--number', '+12025550143', '--provider', 'meta', '--phone-number-id', '123', '--token', TOKEN];
    const meta = await add(['--organization', orgId, ...options]);
    assert.equal(meta.err, '');
    assert.deepEqual(await stored(meta.out), {
      number: '+12025550143',
      provider: 'meta',
      phone_number_id: '123',
      account_sid: null,
      token: TOKEN,
    });
    const again = await add(['--organization', orgId, ...options]);
    assert.deepEqual(again, { code: 1, out: '', err: 'number: is connected already\n' });
  });

  it('reads the token from standard input for -, so that the list of processes does not show it', async () => {
    const options = ['--organization', orgId, '--number', '+12025550146', '--provider', 'twilio', ...OWN, '-'];
    const env = { DATABASE_URL: database.url, SECRET_KEY };
    const { out, err } = await command(['number', 'add', ...options], env, `${TOKEN}\n`);
    assert.equal(err, '');
    const { token, account_sid } = await stored(out);
    assert.deepEqual([token, account_sid], [TOKEN, ACCOUNT]);
    const nothing = await command(['number', 'add', ...options], env);
    assert.deepEqual([nothing.code, nothing.out], [1, '']);
    assert.match(nothing.err, /^token: must be 1 to 2048/);
  });

  it('adds templates to a number, lists it and removes it', async () => {
    const of = ['--organization', orgId, '--number', '+12025550145'];
    const env = { DATABASE_URL: database.url, SECRET_KEY };
    const template = `receipt,en_US,HX${'0'.repeat(32)},1,name`;
    const made = await add([...of, '--provider', 'twilio', '--template', template]);
    assert.equal(made.err, '');
    const { id } = JSON.parse(made.out) as { id: string };
    const more = `receipt,de,HX${'1'.repeat(32)}`;
    const added = await command(['template', 'add', ...of, '--template', more], env);
    assert.equal(added.err, '');
    assert.deepEqual((JSON.parse(added.out) as { templates: unknown }).templates, [
      { name: 'receipt', language: 'de', content_sid: `HX${'1'.repeat(32)}`, variables: [] },
      { name: 'receipt', language: 'en_US', content_sid: `HX${'0'.repeat(32)}`, variables: ['1', 'name'] },
    ]);
    const replaced = await command(['template', 'add', ...of, '--template', `receipt,de,HX${'2'.repeat(32)},1`], env);
    assert.deepEqual((JSON.parse(replaced.out) as { templates: unknown[] }).templates[0], {
      name: 'receipt',
      language: 'de',
      content_sid: `HX${'2'.repeat(32)}`,
      variables: ['1'],
    });
    const listed = async () => {
      const { out } = await command(['number', 'list', '--organization', orgId], env);
      const { numbers } = JSON.parse(out) as { numbers: { id: string; org_id: string; verified_by: string }[] };
      return numbers.find((number) => number.id === id);
    };
    const found = await listed();
    assert.deepEqual([found?.org_id, found?.verified_by], [orgId, 'operator']);
    const removed = await command(['number', 'remove', ...of], env);
    assert.deepEqual(JSON.parse(removed.out), { id, number: '+12025550145' });
    assert.equal(await listed(), undefined);
    const again = await command(['number', 'remove', ...of], env);
    assert.deepEqual(again, { code: 1, out: '', err: 'number: the organization has no number +12025550145\n' });
  });

  it('seals a token with the key of the npm start that owns the database', async (t) => {
    const home = await temporaryFolder(t);
    const running = { SECRET_KEY: 'x'.repeat(40) };
    await writeFile(join(home, 'dev.json'), JSON.stringify({ database_url: database.url }));
    await writeFile(join(home, 'settings.json'), JSON.stringify(running));
    const options = ['--number', '+12025550144', '--provider', 'twilio', ...OWN, TOKEN];
    const { out, err } = await add(['--organization', orgId, ...options], { SENDWRIGHT_HOME: home });
    assert.equal(err, '');
    assert.equal((await stored(out, 'x'.repeat(40))).token, TOKEN);
  });

  const NUMBER = ['--number', '+12025550149'];
  const TWILIO = [...NUMBER, '--provider', 'twilio'];
  for (const [mistake, args, sentence, exitCode = 1] of [
    ['an unknown provider', [...NUMBER, '--provider', 'vonage'], /Allowed choices are twilio, meta\.\n/, 2],
    ['an invalid number', ['--number', '+1', '--provider', 'twilio'], /^number: is not a telephone number/],
    [
      'Meta without its id',
      [...NUMBER, '--provider', 'meta'],
      /^phone_number_id: is required when provider is meta\n$/,
    ],
    [
      'an invalid id',
      [...NUMBER, '--provider', 'meta', '--phone-number-id', 'a/b'],
      /^phone_number_id: must be 1 to 64/,
    ],
    ['an unused id', [...TWILIO, '--phone-number-id', '1'], /^phone_number_id: is not used by twilio\n$/],
    [
      'templates for Meta',
      [...NUMBER, '--provider', 'meta', '--phone-number-id', '1', '--template', `receipt,de,HX${'0'.repeat(32)}`],
      /^templates: is not used by meta\n$/,
    ],
    ['a token without its account', [...TWILIO, '--token', TOKEN], /^account_sid: is required with token\n$/],
    ['an account without its token', [...TWILIO, '--account-sid', ACCOUNT], /^token: is required with account_sid\n$/],
    ['an invalid account', [...TWILIO, '--account-sid', 'AC1', '--token', TOKEN], /^account_sid: must be AC and 32/],
    [
      'a Twilio account for Meta',
      [...NUMBER, '--provider', 'meta', '--phone-number-id', '1', ...OWN, TOKEN],
      /^account_sid: is not used by meta\n$/,
    ],
    ['a token with a blank', [...TWILIO, ...OWN, 'a b'], /^token: must be 1 to 2048/],
    ['an empty token', [...TWILIO, ...OWN, ''], /argument '' is invalid\. It must not be empty\.\n/, 2],
    [
      'an unknown organization',
      [...TWILIO, '--organization', `org_${'0'.repeat(26)}`],
      /^organization: there is no organization org_0+\n$/,
    ],
  ] as const) {
    it(`refuses ${mistake}`, async () => {
      const { code, out, err } = await add(['--organization', orgId, ...args]);
      assert.deepEqual([code, out], [exitCode, '']);
      assert.match(err, sentence);
    });
  }
});
