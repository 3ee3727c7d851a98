/* What Go's runtime needs on Windows and Wine 8 has not: bcryptprimitives.dll with
 * ProcessPrng, and a deletion by FileDispositionInformationEx (class 64), which Wine
 * answers with STATUS_NOT_IMPLEMENTED, upon which os.Root and os.RemoveAll give up.
 * Every program of Go's loads this library first, so it is the place for both. */
#include <windows.h>
#include <string.h>

BOOLEAN NTAPI SystemFunction036(PVOID, ULONG); /* RtlGenRandom */

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size)
{
	return SystemFunction036(data, (ULONG)size);
}

typedef LONG(NTAPI *set_information)(HANDLE, PVOID, PVOID, ULONG, ULONG);
static set_information original;

static LONG NTAPI older_deletion(HANDLE file, PVOID status, PVOID info, ULONG size, ULONG class)
{
	BOOLEAN gone = TRUE;
	if (class == 64)
		return original(file, status, &gone, sizeof gone, 13); /* FileDispositionInformation */
	return original(file, status, info, size, class);
}

BOOL WINAPI DllMain(HINSTANCE library, DWORD reason, LPVOID reserved)
{
	/* mov rax, older_deletion; jmp rax */
	BYTE jump[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
	PVOID to = older_deletion;
	BYTE *entry = (BYTE *)GetProcAddress(GetModuleHandleA("ntdll.dll"), "NtSetInformationFile");
	DWORD before;
	(void)library, (void)reserved;
	if (reason != DLL_PROCESS_ATTACH)
		return TRUE;
	/* The entry is a system call's stub, which runs wherever it lies. */
	original = (set_information)VirtualAlloc(NULL, 64, MEM_COMMIT | MEM_RESERVE, PAGE_EXECUTE_READWRITE);
	if (!entry || !original || !VirtualProtect(entry, sizeof jump, PAGE_EXECUTE_READWRITE, &before))
		return FALSE;
	memcpy((void *)original, entry, 32);
	memcpy(jump + 2, &to, sizeof to);
	memcpy(entry, jump, sizeof jump);
	return TRUE;
}
