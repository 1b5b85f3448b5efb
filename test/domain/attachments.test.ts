import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  blockedContent,
  blockedFile,
  contentIdProblem,
  contentTypeOf,
  contentTypeProblem,
  decodedSize,
  decodeBase64InSteps,
  filenameProblem,
  pathProblem,
} from '../../src/domain/email/attachments.ts';
import { isBlockedContentType, isBlockedExtension } from '../../src/domain/email/blocked-files.ts';
import { anyString } from './near-addresses.ts';

/** https://postmarkapp.com/developer/user-guide/send-email-with-api: what Postmark refuses. */
const POSTMARK_REFUSES =
  'vbs exe bin bat chm com cpl crt hlp hta inf ins isp jse lnk mdb pcd pif reg scr sct shs vbe vba wsf wsh wsl msc msi msp mst';

function decodeBase64(text: string): Buffer | undefined {
  const decoding = decodeBase64InSteps(text);
  for (;;) {
    const { done, value } = decoding.next();
    if (done) return value;
  }
}

const named = (filename: string, content_type: string | null = null) => blockedFile({ filename, content_type });

describe('the name of a file', () => {
  it('is 1 to 255 characters, counted in code points', () => {
    for (const name of ['a', 'a'.repeat(255), '😀'.repeat(255)]) assert.equal(filenameProblem(name), undefined);
    for (const name of ['a'.repeat(256), '😀'.repeat(256)]) {
      assert.equal(filenameProblem(name), 'must be at most 255 characters');
    }
    for (const name of ['', ' ', '\u3000']) assert.equal(filenameProblem(name), 'must not be empty', name);
  });

  it('holds no path', () => {
    for (const name of ['a/b', '/a', 'a/', '\\', 'a\\b', '../a', '..\\a', 'C:\\a.pdf']) {
      assert.equal(filenameProblem(name), 'must be a name without / or \\', name);
    }
    for (const name of ['.', '..', '...']) assert.equal(filenameProblem(name), 'must be more than dots');
  });

  it('holds no control characters', () => {
    for (const name of ['a\0.pdf', 'a.exe\0.pdf', 'a\r\nX: y', 'a\u2028', 'a\u007F', 'a\tb', 'a\uD83D']) {
      assert.notEqual(filenameProblem(name), undefined, JSON.stringify(name));
    }
  });

  it('may be what people call files', () => {
    for (const name of ['Übersicht (1).pdf', 'it\'s "quoted".txt', '.gitignore', 'a..b', '👩‍👧.png']) {
      assert.equal(filenameProblem(name), undefined, name);
      assert.equal(named(name), undefined, name);
    }
  });
});

describe('a blocked file', () => {
  it('is one that Postmark refuses, so that no accepted email fails there', () => {
    for (const extension of POSTMARK_REFUSES.split(' ')) assert.ok(isBlockedExtension(extension), extension);
  });

  it('is an executable, script or installer of interface.md', () => {
    for (const extension of ['exe', 'bat', 'cmd', 'js', 'vbs', 'msi', 'ps1', 'scr', 'sh', 'jar', 'dmg', 'deb', 'py']) {
      assert.deepEqual(named(`a.${extension}`), {
        field: 'filename',
        message: `is of a blocked type (.${extension})`,
      });
    }
  });

  it('is known by its last extension, in any case and any width of letters', () => {
    for (const name of 'A.ExE x.pdf.exe a.ｅｘｅ a．exe a․exe .exe a.e\u200Dxe a.exe\uFE0F'
      .split(' ')
      .concat('a. exe')) {
      assert.equal(named(name)?.message, 'is of a blocked type (.exe)', name);
    }
  });

  it('may hide its extension in no way', () => {
    for (const [message, names] of [
      ['has invisible characters in its name', ['in\u202Efdp.exe', 'a.exe\u200B', 'a.pdf\u00AD']],
      ['has a name that ends in a dot or a space', ['a.exe.', 'a.exe ', 'a.exe . .', 'a.exe\u3000', 'a.exe.\u200D']],
      ['has a colon in its name', ['a.exe:x.pdf', 'a.exe：x.pdf']],
    ] as const) {
      for (const name of names) assert.deepEqual(named(name), { field: 'filename', message }, JSON.stringify(name));
    }
  });

  it('is not one that only looks like it', () => {
    for (const name of 'a.json setup.exe.pdf exe a.exec a.jsx js.txt a.zip a.html'.split(' '))
      assert.equal(named(name), undefined, name);
  });

  it('is one with a blocked content type, with parameters or not', () => {
    for (const type of [
      'Application/X-MSDownload; name=a.pdf',
      'text/javascript ; charset=utf-8',
      'application/x-sh',
    ]) {
      assert.deepEqual(named('a.pdf', type), { field: 'content_type', message: `is of a blocked type (${type})` });
    }
    for (const type of ['application/octet-stream', 'text/plain']) assert.equal(named('a.pdf', type), undefined, type);
  });

  it('has a blocked extension or a type that is none of theirs: no type that a name stands for is forgotten', () => {
    for (const extension of 'js mjs sh csh exe bat com jar jnlp apk hlp mdb rpm tcl class wasm php'.split(' ')) {
      const type = contentTypeOf({ filename: `a.${extension}`, content_type: null });
      assert.ok(type === 'application/octet-stream' || isBlockedContentType(type), `${extension}: ${type}`);
    }
  });

  it('is one that contains a program, regardless of its name', () => {
    for (const start of ['MZ', '\x7FELF', '#!/bin/sh', ...['\xFE\xED\xFA\xCE', '\xCF\xFA\xED\xFE', '\xCA\xFE\xBA\xBE']])
      assert.equal(blockedContent(Buffer.from(start, 'latin1')), 'contains a program, regardless of its name', start);
    for (const content of ['', 'M', 'mz', 'PK\x03\x04', '# !', ' #!', '\x7FELE', 'A MZ'])
      assert.equal(blockedContent(Buffer.from(content, 'latin1')), undefined, content);
  });
});

describe('a content id', () => {
  it('is 1 to 128 letters, digits, ., _, @ and -', () => {
    for (const id of ['a', 'logo@example.com', 'A-1_2.3', 'a'.repeat(128)])
      assert.equal(contentIdProblem(id), undefined);
    for (const id of ['', 'a'.repeat(129)]) assert.equal(contentIdProblem(id), 'must be 1 to 128 characters');
    for (const id of ['<a>', 'a b', 'é', 'a\r\nX', 'a\n', 'a/b', 'a:b', 'a"', 'a\0'])
      assert.equal(contentIdProblem(id), 'may contain only letters, digits, ., _, @ and -', JSON.stringify(id));
  });
});

describe('a content type', () => {
  it('is a MIME type, with parameters or without', () => {
    const long = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';
    for (const type of [
      'text/csv; charset=utf-8',
      'text/csv;charset="utf-8"; header=present',
      long,
      'image/svg+xml',
      'x/y',
    ])
      assert.equal(contentTypeProblem(type), undefined, type);
    for (const type of [
      ...['', 'text', '/', 'text/', '/plain', 'text/plain/x', 'text plain', 'té/xt', ' text/plain', '*', 'a/b, c/d'],
      ...['text/plain;', 'text/plain; x', 'text/plain; =x', 'text/plain; a=', 'text/plain; a="b', 'text/plain;\ta=b'],
      ...['text/plain\r\nX: y', 'text/plain; a="\r\n"', 'text/plain\r\n', 'text/plain; a=b\n', 'text/plain\u00A0'],
    ])
      assert.equal(contentTypeProblem(type), 'must be a MIME type such as application/pdf', JSON.stringify(type));
    assert.equal(contentTypeProblem('Multipart/mixed'), 'must be the type of one file, not multipart');
    assert.equal(contentTypeProblem(`a/${'b'.repeat(253)}`), undefined);
    assert.equal(contentTypeProblem(`a/${'b'.repeat(254)}`), 'must be at most 255 characters');
  });

  it('follows from the name when none is given', () => {
    for (const [filename, type] of [
      ['a.pdf', 'application/pdf'],
      ['a.b.PNG', 'image/png'],
      ['a', 'application/octet-stream'],
      ['pdf', 'application/octet-stream'],
      ['a.constructor', 'application/octet-stream'],
      ['a.__proto__', 'application/octet-stream'],
    ] as const)
      assert.equal(contentTypeOf({ filename, content_type: null }), type, filename);
    assert.equal(contentTypeOf({ filename: 'a.pdf', content_type: 'text/x' }), 'text/x');
  });
});

describe('a path', () => {
  it('is not read as a URL beyond 8192 characters', () => {
    assert.equal(pathProblem(`http://a.com/${'a'.repeat(8_179)}`), undefined);
    assert.equal(pathProblem(`http://a.com/${'a'.repeat(8_180)}`), 'must be at most 8192 characters');
  });
});

describe('base64', () => {
  it('is decoded to the very bytes, of any number', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const text = Buffer.from(bytes).toString('base64');
        assert.deepEqual(decodeBase64(text), Buffer.from(bytes));
        assert.equal(decodedSize(text), bytes.length);
      }),
    );
  });

  it('has one form: only the encoding of the decoded bytes is accepted', () => {
    const near = fc.string({ unit: fc.constantFrom('A', 'Q', 'g', '=', '+', '/', '-', '_', ' ', '\n', 'é', '%') });
    fc.assert(
      fc.property(fc.oneof(near, anyString, fc.base64String()), (text) => {
        const decoded = decodeBase64(text);
        if (decoded) assert.equal(decoded.toString('base64'), text);
        else assert.notEqual(Buffer.from(text, 'base64').toString('base64'), text);
      }),
      { numRuns: 5_000 },
    );
  });

  it('is refused with white space, without padding, with stray bits, in the URL alphabet, as a data URL', () => {
    const urlAlphabet = '-_-_';
    for (const text of ['aG k=', 'aGk', 'aGk==', 'aGl=', '=', 'YQ==YQ==', urlAlphabet, 'data:;base64,aGk=', 'aGk=\n'])
      assert.equal(decodeBase64(text), undefined, JSON.stringify(text));
    assert.deepEqual(decodeBase64(''), Buffer.alloc(0));
  });

  it('is not two texts in a row, also where one piece of it ends', () => {
    const first = Buffer.alloc(786_430, 'x').toString('base64');
    assert.equal(first.length, 1_048_576);
    assert.ok(first.endsWith('=='));
    assert.equal(decodeBase64(first)?.length, 786_430);
    assert.equal(decodeBase64(`${first}YWJj`), undefined);
  });

  it('is compared over every piece of a large text', () => {
    const text = Buffer.alloc(3 * 786_432 + 100, 'x').toString('base64');
    assert.equal(decodeBase64(text)?.length, 3 * 786_432 + 100);
    for (const at of [0, 1_048_575, 1_048_576, 2_500_000, text.length - 5]) {
      assert.equal(decodeBase64(`${text.slice(0, at)} ${text.slice(at + 1)}`), undefined, String(at));
      assert.equal(decodeBase64(`${text.slice(0, at)}-${text.slice(at + 1)}`), undefined, String(at));
    }
  });
});
