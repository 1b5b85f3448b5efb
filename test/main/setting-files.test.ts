import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ConfigError, readConfig } from '../../src/config.ts';
import { checkTemporalSwitches, environmentOfChild, readSettingFiles } from '../../src/main/env.ts';
import { temporaryFolder } from '../support/folder.ts';

const SECRET = 'a secret of at least 32 characters';

test('every setting and the API key of Temporal can be given by a file', async (t) => {
  const folder = await temporaryFolder(t);
  const file = (text: string) => {
    const path = join(folder, 'setting');
    writeFileSync(path, text);
    return path;
  };
  const value = (name: string, env: Record<string, string>) => readSettingFiles(env)[name];

  await t.test('its text without the final line break is the value', () => {
    for (const end of ['', '\n', '\r\n']) {
      assert.equal(readConfig(readSettingFiles({ SECRET_KEY_FILE: file(SECRET + end) })).SECRET_KEY, SECRET);
    }
    for (const name of ['PORT', 'TEMPORAL_API_KEY'])
      assert.equal(value(name, { [`${name}_FILE`]: file('80\n') }), '80');
  });

  await t.test('only the final line break is removed', () => {
    assert.equal(value('SECRET_KEY', { SECRET_KEY_FILE: file(' a\nb \n\n') }), ' a\nb \n');
  });

  await t.test('an empty file is ignored, so the environment may contain the setting', () => {
    assert.equal(value('SECRET_KEY', { SECRET_KEY_FILE: file('') }), undefined);
    assert.equal(value('SECRET_KEY', { SECRET_KEY_FILE: file('\n'), SECRET_KEY: SECRET }), SECRET);
    assert.equal(value('SECRET_KEY', { SECRET_KEY_FILE: '', SECRET_KEY: SECRET }), SECRET);
  });

  await t.test('files can be read repeatedly', () => {
    const env = readSettingFiles({ SECRET_KEY_FILE: file(SECRET) });
    assert.equal(readSettingFiles(env)['SECRET_KEY'], SECRET);
  });

  await t.test('a child process gets the values, although a file has changed since', () => {
    const env = readSettingFiles({ SECRET_KEY_FILE: file(SECRET), PORT_FILE: '', HOME: folder });
    file('a new secret');
    const given = environmentOfChild(env);
    assert.deepEqual(readSettingFiles(given), { SECRET_KEY: SECRET, PORT_FILE: '', HOME: folder });
  });

  await t.test('two different values are refused without showing them', () => {
    const env = { SECRET_KEY_FILE: file(SECRET), SECRET_KEY: 'another' };
    assert.throws(() => readSettingFiles(env), {
      constructor: ConfigError,
      message: 'SECRET_KEY and the file that SECRET_KEY_FILE names have different values: unset one of them',
    });
  });

  await t.test('a file that cannot be read is reported with its meaning and an example', () => {
    assert.throws(() => readSettingFiles({ SMTP_URL_FILE: join(folder, 'absent') }), {
      constructor: ConfigError,
      message:
        'SMTP_URL_FILE cannot be read (ENOENT): the file that holds SMTP_URL, for example SMTP_URL_FILE=/run/secrets/smtp_url',
    });
    assert.throws(() => readSettingFiles({ SMTP_URL_FILE: folder }), /SMTP_URL_FILE cannot be read \(EISDIR\)/);
  });

  await t.test('settings of other programs are ignored', () => {
    const env = { TEMPORAL_CONFIG_FILE: '/absent', X_FILE: '/absent' };
    assert.deepEqual(readSettingFiles({ ...env }), env);
  });
});

test('a switch of Temporal is true or false, or empty and then unset', () => {
  for (const value of ['true', 'false', '1', '0']) {
    assert.deepEqual(checkTemporalSwitches({ TEMPORAL_TLS: value }), { TEMPORAL_TLS: value });
  }
  assert.deepEqual(checkTemporalSwitches({ TEMPORAL_TLS: '', TEMPORAL_ADDRESS: '' }), { TEMPORAL_ADDRESS: '' });
  for (const value of ['yes', 'no', 'TRUE', 'on', ' true']) {
    assert.throws(() => checkTemporalSwitches({ TEMPORAL_TLS: value }), {
      constructor: ConfigError,
      message:
        'TEMPORAL_TLS is malformed: whether connections to Temporal use TLS, true or false, for example TEMPORAL_TLS=true',
    });
  }
});
