/**
 * Extensions that are refused: files that run or install something on a double click, and files that Postmark refuses
 * (https://postmarkapp.com/developer/user-guide/send-email-with-api#attachments), so that no accepted email fails for them
 * later. In lower case, without the dot.
 */
export const BLOCKED_EXTENSIONS: ReadonlySet<string> = new Set(
  [
    // Programs and libraries.
    'exe ex_ com scr pif cpl sys drv dll ocx xll vxd bin elf out run so dylib o app air gadget wasm class jar jnlp',
    // Installers, packages and disk images that mount themselves.
    'msi msp mst msix msixbundle msm appx appxbundle appinstaller application apk aab xapk ipa deb rpm snap flatpak',
    'appimage pkg mpkg dmg iso img vhd vhdx cab diagcab diagcfg diagpkg',
    // Scripts.
    'bat cmd btm js jse mjs cjs vb vbs vbe vba ws wsf wsh wsc wsl sct ps1 ps1xml ps2 ps2xml psc1 psc2 psd1 psm1 psrc',
    'sh bash zsh ksh csh tcsh fish command action workflow scpt scptd applescript osx ahk au3 hta nsh',
    'py pyc pyo pyw pyz pyzw pl pm rb php phtml phar asp aspx jsp tcl lua',
    // Files that start one of the above, or change the system when opened.
    'lnk url desktop webloc scf inf ins isp reg msc chm hlp crt shs shb shd mdb mde ade adp mdt mdw mda maf mam maq mar',
    'mas mat mau mav maw pcd plg prf prg theme settingcontent-ms library-ms search-ms searchconnector-ms grp mcf',
  ].flatMap((line) => line.split(' ')),
);

/** @param extension in lower case, without its dot */
export function isBlockedExtension(extension: string): boolean {
  return BLOCKED_EXTENSIONS.has(extension);
}

/** MIME types of the same files, in lower case without parameters. Many have several names. */
const CONTENT_TYPES = new Set(
  [
    'application/x-msdownload application/x-msdos-program application/x-dosexec application/x-exe application/exe',
    'application/vnd.microsoft.portable-executable application/x-executable application/x-elf application/x-sharedlib',
    'application/x-pie-executable application/x-object application/x-mach-binary application/x-mach-o-executable',
    'application/wasm application/java-vm application/java-archive application/x-java-archive',
    'application/x-java-jnlp-file application/x-java-applet',
    'application/x-msi application/x-ms-installer application/vnd.ms-installer application/x-windows-installer',
    'application/msix application/appx application/x-ms-application application/x-ms-shortcut',
    'application/vnd.android.package-archive application/x-apple-diskimage application/x-debian-package',
    'application/vnd.debian.binary-package application/x-rpm application/x-redhat-package-manager',
    'application/vnd.snap application/vnd.flatpak application/x-iso9660-appimage application/vnd.appimage',
    'application/x-iso9660-image application/vnd.ms-cab-compressed',
    'application/x-bat application/bat application/x-msbatch text/x-msdos-batch',
    'application/javascript text/javascript application/x-javascript text/x-javascript application/ecmascript',
    'text/ecmascript application/x-ecmascript text/jscript text/livescript text/vbscript text/vbs application/x-vbs',
    'application/hta application/x-powershell text/x-powershell',
    'application/x-sh application/x-shellscript text/x-shellscript text/x-sh application/x-shar application/x-csh',
    'text/x-csh application/x-bash application/x-zsh',
    'text/x-python application/x-python application/x-python-code application/x-bytecode.python text/x-script.python',
    'text/x-perl application/x-perl text/x-ruby application/x-ruby',
    'application/x-httpd-php application/x-php text/x-php application/x-tcl application/x-lua text/x-lua',
    'application/x-desktop application/x-mswinurl application/x-ms-regedit text/x-ms-regedit',
    'application/vnd.ms-htmlhelp application/winhlp application/x-msaccess',
  ].flatMap((line) => line.split(' ')),
);

/** @param type with or without parameters, in any case */
export function isBlockedContentType(type: string): boolean {
  const [essence = ''] = type.split(';');
  return CONTENT_TYPES.has(essence.trim().toLowerCase());
}
