let window: any DownloadDelegate = missing()
